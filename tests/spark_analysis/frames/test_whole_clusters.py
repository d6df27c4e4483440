"""A stream of sorted rows is cut into whole clusters, wherever its batches begin and end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from spark_analysis.frames.answering import Work, answer_table, whole_clusters
from spark_analysis.questions import balance

KEYS = ("run", "cluster")
SCHEMA = pa.schema(
    [
        ("run", pa.timestamp("us", "UTC")),
        ("cluster", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
    ]
)


def sorted_rows(seed: int) -> tuple[list[tuple[Any, ...]], pa.Table]:
    """Clusters of one partition to many, by two keys that may be null, and their rows."""
    drawn = random.Random(seed)
    keys = [(run, name) for run in (None, 0, 1) for name in (None, "a", "b", "c") if drawn.random() < 0.8]
    rows = []
    for run, name in keys:
        for partition in range(drawn.choice((1, 1, 2, 40))):
            rows.append((run, name, "t", partition, drawn.sample(range(4), 2)))
    columns = list(zip(*rows, strict=True))
    return keys, pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def batches_of(rows: pa.Table, seed: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of random sizes, some of them empty."""
    drawn, start = random.Random(seed), 0
    while start < rows.num_rows:
        count = drawn.choice((0, 1, 2, 7, 30))
        yield from rows.slice(start, count).to_batches() or [pa.RecordBatch.from_pylist([], schema=SCHEMA)]
        start += count


@pytest.mark.parametrize("seed", range(6))
def test_each_cluster_comes_once_with_all_its_rows(seed: int) -> None:
    keys, rows = sorted_rows(seed)
    seen, parts = [], []
    for some, ends in whole_clusters(batches_of(rows, seed), KEYS):
        assert ends[-1] == some.num_rows
        starts = [0, *ends.tolist()[:-1]]
        seen += [(some["run"][start].as_py(), some["cluster"][start].as_py()) for start in starts]
        for start, end in zip(starts, ends.tolist(), strict=True):
            assert len(set(zip(*(some[key].slice(start, end - start).to_pylist() for key in KEYS), strict=True))) == 1
        parts.append(some)
    assert len(seen) == len(set(seen)) == len(keys)
    assert pa.concat_tables(parts).equals(rows)


@pytest.mark.parametrize("seed", range(2))
def test_answers_do_not_depend_on_where_batches_end(seed: int) -> None:
    _, rows = sorted_rows(seed)
    work = Work(KEYS, KEYS, answer_table(balance.MEASURES, KEYS), many=balance.measures_of)
    answers = [pa.Table.from_batches(list(work.answers(batches_of(rows, number)))).to_pylist() for number in range(3)]
    answers.append(pa.Table.from_batches(list(work.answers(rows.to_batches()))).to_pylist())
    ordered = [sorted(map(str, one)) for one in answers]  # Clusters with faults come in the order of their batch.
    assert all(one == ordered[0] for one in ordered)
    assert {(row["run"], row["cluster"]) for row in answers[0]} == set(
        zip(*(rows[key].to_pylist() for key in KEYS), strict=True)
    )


def test_no_rows_are_no_clusters() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=SCHEMA)
    assert list(whole_clusters([empty, empty], KEYS)) == []
