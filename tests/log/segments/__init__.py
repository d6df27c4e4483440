"""Tests of `log.segments.log_segments`."""
