"""Page visits, counted: side by side and in windows that overlap."""
