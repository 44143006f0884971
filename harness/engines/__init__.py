"""The systems under test: the interface (base), engines as processes (process), and a folder per shipped engine."""
