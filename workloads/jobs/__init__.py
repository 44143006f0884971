"""The shared parts of the jobs of all workloads: run config, progress, crash points, sinks.

A job is a program of its own, thus it imports nothing of the harness.
"""
