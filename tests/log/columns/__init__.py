"""Tests of `log.columns.record_columns`."""
