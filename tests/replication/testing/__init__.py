"""Test the simulated cluster that real clients talk to."""
