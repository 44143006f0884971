"""The commands: a file for each, or for those that belong together, which imports what they need and no more."""
