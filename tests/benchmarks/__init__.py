"""Measurements, run by hand with `python -m tests.benchmarks.NAME`; pytest never collects them."""
