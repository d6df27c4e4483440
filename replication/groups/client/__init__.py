"""Model a consumer of each group protocol as a machine without I/O."""
