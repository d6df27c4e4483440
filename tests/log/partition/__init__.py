"""Tests of log.partition."""
