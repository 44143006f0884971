"""The queries under test. Each file that an engine starts is a program of its own and imports nothing of harness."""
