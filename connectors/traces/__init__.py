"""Real demand: traces of real clusters, read, shaped, booked, and reported."""
