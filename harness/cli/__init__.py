"""The command line: one file a command, which imports what it needs and no more; app.py is their registry."""
