"""Every function returns the columns that it documents, with their types."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.questions import groups, traffic
from tests.spark_analysis.answer_columns import KEYS, OF_CLUSTERS, OF_GROUPS, answers, document
from tests.spark_analysis.frames.test_bad_rows import ASKED, MEMBERS
from tests.spark_analysis.frames.test_bad_rows import COLUMNS as PARTITIONS

ASKED_OF_GROUPS = {
    "assignments": lambda *rows: groups.assignments(*rows, assignor="range"),
    "balance": lambda *rows: groups.balance(*rows, assignors=["range"]),
    "moves": lambda *rows: groups.moves(*rows, assignor="range"),
    "groups": lambda *rows: traffic.groups(*rows, assignors=["range"]),
    "changes": lambda *rows: traffic.clusters(*rows, assignors=["range"]),
}
_NAMES = {"outages.partitions": "hit by a broker", "traffic.clusters": "changes"}


def test_every_answer_has_a_section_in_the_document() -> None:
    assert [line[3:] for line in document().splitlines() if line.startswith("## ")] == list(answers())


def named(frame: DataFrame) -> list[tuple[str, str, str]]:
    fields = [field for field in frame.schema.fields if field.name not in KEYS]
    return [(field.name, field.dataType.simpleString(), field.metadata.get("comment", "")) for field in fields]


@pytest.mark.parametrize("name", [*OF_CLUSTERS, *OF_GROUPS, "groups.lag"])
def test_every_function_returns_the_columns_of_the_document(spark: SparkSession, name: str) -> None:
    partitions, members = spark.createDataFrame([], PARTITIONS), spark.createDataFrame([], MEMBERS)
    short = _NAMES.get(name, name.split(".")[1])
    if name in OF_CLUSTERS:
        frame = ASKED[short](partitions)
    elif name in OF_GROUPS:
        frame = ASKED_OF_GROUPS[short](members, partitions)
    else:
        offset = F.lit(1).cast("long")
        offsets = (offset.alias("current_offset"), offset.alias("log_end_offset"))
        numbers = (F.lit("t").alias("topic"), F.lit(0).alias("partition"))
        frame = groups.lag(members.select("cluster", "group", *numbers, *offsets))
    expected = [field for field in spark_schema_of(answers()[name]).fields if field.name not in KEYS]
    assert [row[:2] for row in named(frame)] == [(field.name, field.dataType.simpleString()) for field in expected]
    # Which rows are counted as rejected depends on the function, and so does that comment.
    assert [row[2] for row in named(frame) if row[0] != "rejected_count"] == [
        field.metadata["comment"] for field in expected if field.name != "rejected_count"
    ]
