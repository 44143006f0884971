"""Flink as a system under test. Its jobs are in workloads; nothing here imports pyflink."""
