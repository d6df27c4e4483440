"""Tests of placement.placers."""
