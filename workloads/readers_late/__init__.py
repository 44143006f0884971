"""Reads of each section in tumbling windows, with three policies for late reads."""
