"""Ways to a running service: the sequencer's socket, and HTTP."""
