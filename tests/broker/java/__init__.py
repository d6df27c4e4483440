"""Tests of broker.java."""
