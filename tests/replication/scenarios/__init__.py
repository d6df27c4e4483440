"""Tests of replication.scenarios."""
