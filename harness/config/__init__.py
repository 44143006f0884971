"""A scenario: its keys, their resolution with flags to one RunSpec, and conflicting values."""
