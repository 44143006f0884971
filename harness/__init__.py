"""One run of streamgauge: what happens, in which order, and what it means."""

__version__ = "0.2.0"
