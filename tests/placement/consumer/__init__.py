"""Tests of assignors: partitions on consumers."""
