"""The queries under test: each file that an engine starts is a program of its own and imports nothing of harness."""
