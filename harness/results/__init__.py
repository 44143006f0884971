"""Where an engine leaves its counts, and how they are read. Whatever it is, what comes out is the rows of `compact`."""
