"""Very many clusters at once, on Spark. Modules that need pyspark are imported by name, so that the rest starts at once."""

from __future__ import annotations

from spark_analysis.schemas import TABLES, Column, Table

__all__ = ("TABLES", "Column", "Table")
