"""Tests of what crosses zones."""
