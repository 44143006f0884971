"""The log of a run, read back from Kafka by one process or several."""
