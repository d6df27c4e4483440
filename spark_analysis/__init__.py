"""Very many clusters at once, on Spark. What needs pyspark is imported by module, so that the rest starts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_analysis.tables.schemas import TABLES, Column, Table
else:  # These need pyarrow.
    from broker.late import late_names

    __getattr__ = late_names(__name__, {"spark_analysis.tables.schemas": ("TABLES", "Column", "Table")})

__all__ = ("TABLES", "Column", "Table")
