"""What is true and what may become true: pure, deterministic, standard library only."""
