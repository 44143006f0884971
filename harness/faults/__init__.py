"""Faults: deliberate harm to an engine or its services, the proof that it happened, and its undoing."""
