"""Read the log of a run back from Kafka."""
