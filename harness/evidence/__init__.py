"""Hold the tables of a run as values: what was sent, observed, counted and expected. Pure."""
