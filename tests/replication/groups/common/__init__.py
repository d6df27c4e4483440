"""Tests of replication.groups.common."""
