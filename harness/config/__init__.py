"""A scenario: its keys, from keys and flags to one RunSpec, and values that conflict."""
