"""Clusters on a virtual clock."""
