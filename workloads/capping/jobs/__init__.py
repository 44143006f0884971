"""Jobs that answer each ad request by the cap and the cool-down of its user."""
