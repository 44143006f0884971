"""What a run touches: real processes, or lists and a clock that is cranked by hand."""
