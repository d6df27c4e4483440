"""Tests of the storages, and of what a crash leaves of them."""
