"""Embedded Kafka and Redis as child processes, external ones by address, and the ownership of both."""
