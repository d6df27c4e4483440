"""Tests of spark_analysis; only those marked `spark` start a session."""
