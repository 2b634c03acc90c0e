"""What would be best: proposals, never facts, and the checker that distrusts them."""
