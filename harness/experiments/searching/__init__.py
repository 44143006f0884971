"""The search for the rate at which an engine misses its objective. The curve itself is in harness/experiments/curve."""
