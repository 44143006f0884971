"""Judge from files alone whether a run's counts are right."""
