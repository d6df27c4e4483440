"""Very many clusters at once, on Spark. What needs pyspark is imported by module, so that the rest starts at once."""

from __future__ import annotations

from spark_analysis.tables.schemas import TABLES, Column, Table

__all__ = ("TABLES", "Column", "Table")
