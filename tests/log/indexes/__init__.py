"""Tests of `log.indexes`."""
