"""The journal, the read models and their migrations in PostgreSQL."""
