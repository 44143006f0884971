"""What a browser on this machine may see: one server on loopback, which changes nothing."""
