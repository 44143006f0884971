"""Planted bugs and wrong checkers, which show that each check fails when it should."""
