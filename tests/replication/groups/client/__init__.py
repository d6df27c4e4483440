"""Tests of replication.groups.client."""
