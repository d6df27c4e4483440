"""Tests of spark_analysis.engines."""
