"""Output on a terminal, and the end of every command."""
