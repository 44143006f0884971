"""Planted bugs and wrong checkers: shows that each check fails when it should."""
