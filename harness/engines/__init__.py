"""The systems under test: one seam (base), one way to run a process (process), one folder each for what is shipped."""
