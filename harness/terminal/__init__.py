"""What a terminal shows, and how every command ends."""
