"""Is a change wrong, slower or costlier than what it replaces?"""
