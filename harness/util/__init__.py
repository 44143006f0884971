"""Helpers that import nothing about streams: text, integers, waiting, clocks, TOML, seeded draws."""
