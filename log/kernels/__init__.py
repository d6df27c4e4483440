"""Compiled loops over the bytes of logs; each stands beside a slow readable twin that tests compare it with."""
