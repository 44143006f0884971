"""The gate: compare a change with what it replaces, and decide whether it is wrong, slower or costlier."""
