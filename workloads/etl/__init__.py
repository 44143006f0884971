"""Each event becomes a clean row of a table, once."""
