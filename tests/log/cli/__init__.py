"""Tests of log.cli."""
