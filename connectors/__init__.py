"""Everything that touches the world, one part of it each."""
