"""Tests of replication.cli."""
