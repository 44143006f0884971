"""What is asked of an engine: one folder per workload."""
