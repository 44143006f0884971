"""What is looked at while a run goes on: results, processor and memory, clocks, and what a run waits for."""
