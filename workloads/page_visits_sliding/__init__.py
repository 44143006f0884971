"""The question of `page_visits` in sliding windows, where each visit belongs to five windows."""
