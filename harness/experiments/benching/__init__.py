"""What the parts of this program and of its Spark job cost by themselves."""
