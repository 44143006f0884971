"""What is sent and when: profiles, disorder, the tape, its bytes, and the ad servers that send them."""
