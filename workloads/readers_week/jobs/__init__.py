"""The jobs of `readers_distinct`, with windows of a week."""
