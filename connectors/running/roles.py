"""The roles of a service, each a process."""

ROLES = ("sequencer", "follower", "reconciler", "planner", "http")
"""What every service runs."""

KAFKA_ROLES = ("relay", "ingress")
"""What it runs besides where a broker is configured."""
