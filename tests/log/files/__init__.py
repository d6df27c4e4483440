"""Tests of `log.files`."""
