"""The workload `readers_join`: each read once, with how many different articles its reader had in the last minute."""
