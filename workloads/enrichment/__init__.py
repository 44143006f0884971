"""Each event is emitted once, with earlier actions of its user."""
