"""How many different visitors each country has in each window, and how many visits: the windows stand side by side."""
