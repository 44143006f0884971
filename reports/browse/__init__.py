"""Runs and experiments of a folder as pages for a browser: the list, two runs side by side, trends, stored files."""
