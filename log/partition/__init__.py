"""One partition's log: append, read, recover, retain."""
