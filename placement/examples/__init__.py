"""Show two placement policies: one to use, and one that the checks catch."""
