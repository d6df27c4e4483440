"""Tests of broker/: the shared words, and the machines inside one broker."""
