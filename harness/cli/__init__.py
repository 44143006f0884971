"""The command line: one file per command, which imports only what it needs. app.py is the registry."""
