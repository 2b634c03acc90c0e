"""The HTTP face: JSON under /v1, problems by RFC 9457, a page for people."""
