"""The shared parts of the jobs of all workloads: run config, progress, crash points, sinks.

A job is a separate program, so it imports nothing of the harness.
"""
