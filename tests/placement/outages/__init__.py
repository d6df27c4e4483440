"""Outages and restarts."""
