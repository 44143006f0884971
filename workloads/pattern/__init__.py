"""A small payment, then a large one of the same card within a bound in time: each match once, with both events."""
