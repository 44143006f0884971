"""What the jobs of all workloads share: their orders, what they tell, where they may crash, how they write. A job is a
program of its own, so that nothing of it is known to the harness."""
