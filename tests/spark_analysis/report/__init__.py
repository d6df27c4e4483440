"""Tests of the report, without Spark: the page is made from Parquet tables written here."""
