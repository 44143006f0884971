"""Experiments of many runs or measurements with one question."""
