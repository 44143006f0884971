"""The parts of a run that its nine steps (harness/run.py) share, each with a state of its own."""
