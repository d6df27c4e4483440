"""Tests of placement.consumer.sticky."""
