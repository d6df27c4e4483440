"""Tests of `log.producers`."""
