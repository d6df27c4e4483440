"""Tests of the metadata log."""
