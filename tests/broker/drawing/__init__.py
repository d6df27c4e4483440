"""Tests of the drawing room: markup, palette, scales and the two shells."""
