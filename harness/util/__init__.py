"""Helpers without knowledge of streams: text, integers, waiting, clocks, TOML, seeded draws."""
