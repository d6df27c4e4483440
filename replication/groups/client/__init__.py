"""Consumers of each group protocol as machines without I/O."""
