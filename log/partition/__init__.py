"""Append to, read, recover, truncate and retain one partition's log."""
