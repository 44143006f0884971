"""The workload `readers_week`: what different articles each reader read in a week, anew each six hours."""
