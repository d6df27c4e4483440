"""Rows of partitions that no cluster can have are put aside, as a reader of dumps does, and add no broker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from broker.partition_faults import PARTITION_ID_MAX, fault_of_number, fault_of_row
from spark_analysis.frames.answering import Work, answer_table
from spark_analysis.frames.impossible import impossible
from spark_analysis.frames.views import usable_partitions, view_of_rows
from spark_analysis.questions import balance
from spark_analysis.tables.schemas import CLUSTER_PARTITIONS

SCHEMA = CLUSTER_PARTITIONS.arrow_schema()
NAMES = ("cluster", "topic", "partition", "leader", "replicas", "isr")
GOOD: dict[str, Any] = {"cluster": "c", "topic": "t", "leader": 1, "replicas": [1, 2], "isr": [1, 2]}
CHANGED: tuple[dict[str, Any], ...] = (
    {}, {"leader": -1}, {"leader": None}, {"leader": 99}, {"isr": [2, 77]}, {"isr": []}, {"isr": None},
    {"partition": -4}, {"partition": PARTITION_ID_MAX}, {"partition": PARTITION_ID_MAX + 1},
    {"leader": 2, "replicas": [3, 2, 1], "isr": [1]}, {"leader": 7, "replicas": [], "isr": []},
)  # fmt: skip


def table(*changed: dict[str, Any]) -> pa.Table:
    rows = [GOOD | {"partition": place} | one for place, one in enumerate(changed)]
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, SCHEMA.field(name).type) for name in NAMES]))


def test_the_judgement_is_that_of_the_readers_of_dumps() -> None:
    rows = table(*CHANGED)
    judged = [
        fault_of_number(row["partition"], "partition", high=PARTITION_ID_MAX)
        or fault_of_row(row["leader"], row["replicas"], row["isr"])
        for row in rows.to_pylist()
    ]
    assert impossible(rows).tolist() == [fault is not None for fault in judged]
    assert impossible(rows).sum() == 5


@pytest.mark.parametrize("replicas", [[1, None], [1, -5], [1, 2**31]])
def test_a_list_that_is_a_fault_of_the_cluster_is_not_judged(replicas: list[int | None]) -> None:
    rows = table({"leader": 2}, {}).drop_columns("replicas")
    rows = rows.append_column("replicas", pa.array([replicas, [1, 2]], pa.list_(pa.int64())))
    assert impossible(rows).tolist() == [False, False]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_other_rows_of_the_cluster_are_answered_and_no_broker_is_added(seed: int) -> None:
    rows = table({}, {"leader": 99}, {"isr": [77]}, {})
    found = usable_partitions(rows if seed == 0 else rows.take([3, 2, 1, 0]))
    assert found.fault == (
        "2 rows cannot be used; one of them: partition 1 of topic 't': Leader 99 is no replica (1,2)"
    )
    assert (found.rejected_count, found.rows["partition"].to_pylist()) == (2, [0, 3] if seed == 0 else [3, 0])
    assert view_of_rows("c", found.rows, None).broker_ids.tolist() == [1, 2]


def test_a_fault_that_a_row_has_is_what_is_said() -> None:
    rows = table({"leader": 99}, {}).append_column("fault", pa.array(["cut off", None]))
    assert (usable_partitions(rows).fault, usable_partitions(rows).rejected_count) == ("cut off", 1)
    both = table({"leader": 99}, {}).append_column("fault", pa.array([None, "a line is cut off"]))
    assert usable_partitions(both).rejected_count == 2


@pytest.mark.parametrize("count", [1, 6])
def test_clusters_without_a_name_are_faults_one_by_one_and_many_at_once(count: int) -> None:
    names = [None, *(f"c{number}" for number in range(count))]
    rows = pa.concat_tables([table({"cluster": name}, {"cluster": name}) for name in names]).combine_chunks()
    keys = ("cluster",)
    work = Work(keys, keys, answer_table(balance.MEASURES, keys), many=balance.measures_of)
    found = [row for batch in work.answers(rows.to_batches()) for row in batch.to_pylist()]
    unnamed = [(row["fault"], row["rejected_count"]) for row in found if row["cluster"] is None]
    assert unnamed == [("2 rows cannot be used; one of them: 2 without cluster", 2)]
    assert {row["cluster"] for row in found if row["fault"] is None} == set(names) - {None}
