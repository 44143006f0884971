"""Measure a run: the measured values, and the pure functions that compute them."""
