"""Jobs that count different articles of each reader in sliding windows."""
