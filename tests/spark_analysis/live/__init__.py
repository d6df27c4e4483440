"""Tests of spark_analysis.live."""
