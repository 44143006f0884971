"""Faults: what is done to an engine on purpose, the proof that it happened, and how it is undone."""
