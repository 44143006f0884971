"""Measure CPU time, memory, JIT compilation and clocks during a run."""
