"""Jobs that join the distinct articles of a sliding window back to the reads."""
