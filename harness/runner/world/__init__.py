"""The outside of a run: real processes, or lists and simulated time."""
