"""The machine: control groups, disks, what a run needs of it, starved CPUs, kills for memory."""
