"""Stories in YAML: a fleet, a clock, steps, and what has to come of them."""
