"""Tests of `replication.explore`."""
