"""Tests of replication.groups.alone."""
