"""Workloads that are declared in a file instead of written in Python: fields with draws, and the oracle as SQL."""
