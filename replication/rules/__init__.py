"""The rules of replication as pure functions of frozen values."""
