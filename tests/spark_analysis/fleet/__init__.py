"""Tests of spark_analysis.fleet."""
