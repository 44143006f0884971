"""Each order, with what its user ordered before."""
