"""Read an engine's counts from the store where it leaves them. Every source returns the rows of `compact`."""
