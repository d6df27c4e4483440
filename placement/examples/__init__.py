"""Show three placement policies: by load, on few copysets, and one that fails the checks."""
