"""The load: the fleet of ad servers as a child process, loads decided during a run, the load check."""
