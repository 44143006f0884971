"""A run while it goes on, from the files that it writes meanwhile: one state, one page, one file that replays it."""
