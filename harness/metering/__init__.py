"""CPU, memory, JIT and clocks, measured while a run goes on."""
