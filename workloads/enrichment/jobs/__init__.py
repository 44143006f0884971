"""Jobs that emit each order with the earlier orders of its user."""
