"""Tests of spark_analysis.session."""
