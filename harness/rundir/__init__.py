"""The directory of a run: its files, and the markers by which streamgauge recognises its own folders."""
