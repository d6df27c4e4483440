"""Tests of spark_analysis.answers."""
