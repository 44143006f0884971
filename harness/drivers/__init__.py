"""The drivers of long commands. Each executes one run or many, resumes experiments, and writes the pages."""
