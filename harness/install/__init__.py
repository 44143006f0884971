"""Installation: the environment of a checkout, the JVM and its artifacts, `doctor`, facts about the machine."""
