"""Tests of spark_analysis.questions."""
