"""At which rate does an engine miss its objective? The curve itself is in harness/experiments/curve."""
