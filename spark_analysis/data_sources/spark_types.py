"""Turn a table's columns into Spark's schema, and check a schema that the user gives.

Every column may be null in Spark, because the row of a fault has nulls. Comments and units are column metadata, under
`comment` and `unit`; Spark shows the comment in DESCRIBE.

Source: Spark's docs on column metadata.
"""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from broker.errors import UsageError
from spark_analysis.tables.columns import Column, Table


def spark_schema_of(table: Table) -> StructType:
    """Return Spark's schema of `table`, in which every column may be null."""
    plain = from_arrow_schema(table.arrow_schema())
    fields = zip(plain.fields, table.columns, strict=True)
    return StructType([StructField(field.name, field.dataType, True, _meaning(column)) for field, column in fields])


def chosen_columns(source: str, table: Table, schema: StructType) -> tuple[str, ...]:
    """Return the names of the columns that `schema` chooses; raise UsageError for one that the table does not have."""
    known = {field.name: field.dataType for field in spark_schema_of(table).fields}
    for field in schema.fields:
        if field.name not in known:
            raise UsageError(
                f"the table {table.name!r} of {source} has no column {field.name!r}; it has {', '.join(known)}"
            )
        if field.dataType != known[field.name]:
            wanted, has = field.dataType.simpleString(), known[field.name].simpleString()
            raise UsageError(f"column {field.name!r} of {source} is {has}; the schema asks for {wanted}")
    return tuple(schema.fieldNames())


def _meaning(column: Column) -> dict[str, str]:
    return {"comment": column.comment} | ({"unit": column.unit} if column.unit else {})
