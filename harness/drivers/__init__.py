"""Commands that take long: each drives one run or many, resumes, and makes the pages."""
