"""What each visitor saw in a session: visits that follow each other within two seconds."""
