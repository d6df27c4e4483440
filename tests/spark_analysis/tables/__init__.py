"""Tests of spark_analysis.tables."""
