"""Read models as files."""
