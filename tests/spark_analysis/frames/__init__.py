"""Tests of the questions that are asked of DataFrames."""
