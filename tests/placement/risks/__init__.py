"""Tests of placement.risks."""
