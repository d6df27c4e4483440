"""Tests of the house itself: imports, tidiness, the public surface, and the README."""
