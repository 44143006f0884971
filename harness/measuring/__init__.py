"""What a run measures: values, and the pure parts they are put together from."""
