"""The workload `readers_distinct`: what different articles each reader read, in a window that slides by a sixtieth."""
