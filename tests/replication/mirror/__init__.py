"""Tests of replication/mirror."""
