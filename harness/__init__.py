"""One run of streamgauge: what happens, in which order, and what it means."""
