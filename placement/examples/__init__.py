"""Show two placement policies: a useful one, and one that fails the checks."""
