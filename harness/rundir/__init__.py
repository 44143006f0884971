"""The directory of a run: its files, and the marks by which a folder is one of ours."""
