"""Jobs that count the reads of each section by three policies for late ones."""
