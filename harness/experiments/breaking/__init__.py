"""Faults, engines and sinks crossed, and the guarantee that came of it."""
