"""Tests of the tools on log files."""
