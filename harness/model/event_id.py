"""An event's id: 48 bits, 12 of the server that sends it, 36 of its index in that server's tape."""

from __future__ import annotations

# The last server number is kept for the harness' own marks (the opening and the closing events of a run), and the one
# after the ordinary servers for the probes.
INDEX_BITS = 36
INDEX_MASK = (1 << INDEX_BITS) - 1
MARK_SERVER = 4095
MAX_SERVERS = 4094
