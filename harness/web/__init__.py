"""One read-only server on loopback, for a browser on this machine."""
