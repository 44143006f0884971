"""The layout of an event id: 48 bits, 12 for the server that sends it and 36 for the index in that server's tape."""

from __future__ import annotations

# The last server number is reserved for sentinel records (the opening and closing events of a run), and the one after
# the ordinary servers for the probes.
INDEX_BITS = 36
INDEX_MASK = (1 << INDEX_BITS) - 1
MARK_SERVER = 4095
MAX_SERVERS = 4094
