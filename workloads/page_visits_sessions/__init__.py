"""The pages of each visitor's sessions: visits that follow each other within two seconds."""
