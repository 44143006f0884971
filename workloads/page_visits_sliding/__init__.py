"""The question of `page_visits` of windows that overlap, so that each visit lies in five of them."""
