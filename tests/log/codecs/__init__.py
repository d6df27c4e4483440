"""Tests of `log.codecs`."""
