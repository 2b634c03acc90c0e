"""A PostgreSQL of our own: started, watched and stopped with the service."""
