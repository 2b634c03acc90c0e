"""The planner as a role: looks for waiting requests, solves apart, proposes what it found."""
