"""Tests of spark_analysis.sources."""
