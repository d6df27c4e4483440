"""Tiny loops compiled with numba, each beside a readable twin that tests compare it with."""
