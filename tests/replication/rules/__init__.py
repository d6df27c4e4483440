"""Tests of replication.rules."""
