"""Who holds which token: static tokens, kept as hashes."""
