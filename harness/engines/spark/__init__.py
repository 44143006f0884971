"""Spark Structured Streaming as a system under test. Its job is in workloads; nothing here imports pyspark."""
