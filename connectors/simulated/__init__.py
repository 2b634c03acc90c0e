"""A simulated fleet: a product feature, with the manners of real hardware and a seed."""
