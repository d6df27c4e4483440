"""Tests of `log.batches.in_buffer`."""
