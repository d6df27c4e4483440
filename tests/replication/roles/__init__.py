"""Tests of replication.roles."""
