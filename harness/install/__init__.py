"""First use: the environment of a checkout, the JVM and its artifacts, what is missing, and which machine it is."""
