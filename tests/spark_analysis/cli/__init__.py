"""Tests of spark_analysis.cli."""
