"""One run in nine steps: run.py, and the parts that the steps share."""
