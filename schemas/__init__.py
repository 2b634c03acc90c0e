"""Every contract that outlives a deploy: Avro, SQL, the codec."""
