"""List every column that jobs write, and write and read the tables."""
