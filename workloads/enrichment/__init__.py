"""Each event leaves once, with what its user did before."""
