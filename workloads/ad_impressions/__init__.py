"""Yahoo's streaming benchmark: count the views of each campaign in each window of event time."""
