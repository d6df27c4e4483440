"""Tests of placement.producer."""
