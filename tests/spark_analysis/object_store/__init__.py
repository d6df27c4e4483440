"""Tests of runs at an object store."""
