"""Judges the results of other runs of the Yahoo benchmark: do they fit the offered load?"""
