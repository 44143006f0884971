"""What decides whether the counts are right, from files alone."""
