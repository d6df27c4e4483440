"""Show two placement policies: by load, and on few copysets."""
