"""Tests of replication.retention."""
