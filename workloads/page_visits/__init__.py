"""Visits and distinct visitors of each country in each tumbling window."""
