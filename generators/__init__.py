"""Generate the load: profiles, disorder, the tape, its bytes, and the ad servers that send them."""
