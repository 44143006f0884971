"""Jobs that clean and enrich events into tables."""
