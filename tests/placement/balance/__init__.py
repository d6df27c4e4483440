"""Tests of placement.balance."""
