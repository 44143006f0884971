"""Workloads, the questions to an engine: one folder each."""
