"""Tests of the formats that dumps come in."""
