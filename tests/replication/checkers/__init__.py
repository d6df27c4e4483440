"""Tests of replication.checkers."""
