"""Worked examples of placement policies: one to use, and one that the checks catch."""
