"""Jobs that find a small payment and then a large one."""
