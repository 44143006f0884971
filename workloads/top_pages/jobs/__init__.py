"""Jobs that rank pages by their views."""
