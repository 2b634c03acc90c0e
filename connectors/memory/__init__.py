"""The journal in memory: for scenarios, simulations and tests, with the same promises."""
