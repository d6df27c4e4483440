"""Where it is not said what members hold, nothing that is counted from it is a number: not even a zero."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from broker.releases import NEWEST
from placement.traffic.consumers import HELD_NOT_KNOWN
from spark_analysis.answers.group_rows import (
    GroupKernel,
    GroupsAsked,
    balance_rows,
    move_rows,
    reader_rows,
    traffic_rows,
)
from spark_analysis.frames.per_group import BUCKET, _GroupWork, answer_columns
from spark_analysis.questions.traffic import _REJECTED, _beside, changes_table
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import FAULT

KEYS = ("cluster",)
ASSIGNORS = ("now", "range", "sticky")
MISSING: dict[str, list[Any] | None] = {"no column": None, "null": [None, None], "null of one": [["t-0"], None]}


def partitions() -> pa.Table:
    return pa.table(
        {
            "cluster": ["c"] * 4,
            "topic": ["t"] * 4,
            "partition": pa.array(range(4), pa.int32()),
            "leader": pa.array([1, 2, 1, 2], pa.int32()),
            "replicas": pa.array([[1, 2], [2, 1]] * 2, pa.list_(pa.int32())),
            "racks": [["a", "b"], ["b", "a"]] * 2,
            "size_bytes": pa.array([200] * 4, pa.int64()),
        }
    )


def members(held: list[Any] | None, group: str = "g") -> pa.Table:
    columns: dict[str, Any] = {
        "cluster": ["c"] * 2,
        "group": [group] * 2,
        "member_id": ["m0", "m1"],
        "topics": [["t"]] * 2,
        "rack": ["a", "b"],
        BUCKET: pa.array([0, 0], pa.int32()),
    }
    if held is not None:
        columns["held"] = pa.array(held, pa.list_(pa.string()))
    return pa.table(columns)


def asked(kernel: GroupKernel, table: Table, rows: pa.Table, *assignors: str) -> pa.Table:
    what = GroupsAsked(assignors or ASSIGNORS, NEWEST, 0.02)
    work = _GroupWork(KEYS, answer_columns(table, KEYS), kernel, what)
    return work.answered((pa.scalar("c"), pa.scalar(0)), rows, partitions())


def changes(rows: pa.Table) -> dict[str, dict[str, Any]]:
    readers = asked(reader_rows, schemas.READERS, rows)
    documented = Table("changes", "", (*_beside(KEYS), _REJECTED, FAULT))
    found = changes_table(KEYS, (pa.scalar("c"),), partitions(), readers, documented, 0.02).to_pylist()
    assert len({row["change"] for row in found}) == len(found)
    return {row["change"]: row for row in found}


@pytest.mark.parametrize("held", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize(("kernel", "table"), [(balance_rows, schemas.BALANCE), (traffic_rows, schemas.GROUP_TRAFFIC)])
def test_now_is_a_fault_and_what_moves_is_null(kernel: GroupKernel, table: Table, held: list[Any] | None) -> None:
    rows = {row["assignor"]: row for row in asked(kernel, table, members(held)).to_pylist()}
    now = rows.pop("now")
    assert now.pop("fault") == HELD_NOT_KNOWN == "what the members hold is not known: a member has no held"
    assert {value for name, value in now.items() if name not in ("cluster", "group", "assignor")} == {None}
    assert [(row["fault"], row["moved_count"]) for row in rows.values()] == [(None, None)] * 2
    counted = "assigned_count" if table is schemas.BALANCE else "fetched_count"
    assert [row[counted] for row in rows.values()] == [4, 4]


@pytest.mark.parametrize("held", MISSING.values(), ids=MISSING)
def test_moves_from_what_is_not_known_are_one_fault_that_rejects_the_members(held: list[Any] | None) -> None:
    (row,) = asked(move_rows, schemas.MOVES, members(held), "range").to_pylist()
    assert (row["group"], row["why"], row["fault"], row["rejected_count"]) == ("g", None, HELD_NOT_KNOWN, 2)


@pytest.mark.parametrize("held", MISSING.values(), ids=MISSING)
def test_a_cluster_says_what_assignors_cost_but_not_what_they_save(held: list[Any] | None) -> None:
    found = changes(members(held))
    assert found.pop("now")["fault"] == f"group 'g': {HELD_NOT_KNOWN}"
    assert set(found) == {"range", "range + closest replica", "sticky", "sticky + closest replica", "least"}
    assert {(row["saved_bytes"], row["saved_cost"], row["fault"]) for row in found.values()} == {(None, None, None)}
    assert all(row["crossing_bytes"] is not None for row in found.values())
