"""Tests of `replication`."""
