"""What is answered for many clusters at once is what each cluster alone is answered."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_analysis import balance, outages, violations
from spark_analysis.frames.answering import Kernel, Work, answer_table
from spark_analysis.frames.chunks import Chunk
from spark_analysis.frames.many import Many, calm, measures_of
from spark_analysis.frames.many_outages import outages_of
from spark_analysis.sources.dumps import with_min_isr
from spark_analysis.tables.source_schemas import CLUSTER_PARTITIONS

KEYS = ("cluster",)
SCHEMA = CLUSTER_PARTITIONS.arrow_schema()
COLUMNS = ("cluster", "topic", "partition", "leader", "replicas", "isr", "racks", "elr", "offline",
           "min_insync_replicas", "size_bytes", "fault")  # fmt: skip
RARE: dict[str, Callable[[random.Random, dict[str, Any]], None]] = {
    "leaderless": lambda drawn, row: row.update(leader=-1),
    "leader outside": lambda drawn, row: row.update(leader=99),
    "leader not said": lambda drawn, row: row.update(leader=None),
    "isr not said": lambda drawn, row: row.update(isr=None),
    "isr outside": lambda drawn, row: row.update(isr=[*row["replicas"], 88]),
    "isr twice": lambda drawn, row: row.update(isr=[row["replicas"][0]] * 2),
    "no replica": lambda drawn, row: row.update(replicas=[], isr=[], racks=[]),
    "replica twice": lambda drawn, row: row.update(replicas=[1, 1], racks=["a", "a"], isr=[1], leader=1),
    "null in replicas": lambda drawn, row: row.update(replicas=[1, None]),
    "racks too short": lambda drawn, row: row.update(racks=["a"]),
    "another rack": lambda drawn, row: row.update(racks=["elsewhere"] * len(row["replicas"])),
    "eligible": lambda drawn, row: row.update(elr=[5]),
    "offline": lambda drawn, row: row.update(offline=row["replicas"][:1]),
    "sized": lambda drawn, row: row.update(size_bytes=7),
    "a fault": lambda drawn, row: row.update(fault="cut off"),
    "no topic": lambda drawn, row: row.update(topic=None),
    "again": lambda drawn, row: row.update(partition=0, topic="t0"),
    "below 1": lambda drawn, row: row.update(min_insync_replicas=0),
    "huge": lambda drawn, row: row.update(partition=2**31 - 1),
}


def drawn_cluster(name: str, drawn: random.Random) -> list[dict[str, Any]]:
    """A cluster: mostly in order, sometimes with something rare in a row."""
    broker_count = drawn.randint(1, 7)
    ids = sorted(drawn.sample(range(20), broker_count))
    rack_count = drawn.choice((0, 0, 1, 2, 3))
    racks = {broker: f"r{place % rack_count}" if rack_count else "" for place, broker in enumerate(ids)}
    is_calm, says_leaders, says_isr = (drawn.random() < 0.7 for _ in range(3))
    rows = []
    for topic in range(drawn.randint(1, 3)):
        factor, least = drawn.randint(1, min(3, broker_count)), drawn.choice((None, 1, 2))
        for partition in range(drawn.randint(1, 5)):
            replicas = drawn.sample(ids, factor)
            isr = replicas if is_calm else drawn.sample(replicas, drawn.randint(1, factor))
            rows.append(
                {
                    "cluster": name, "topic": f"t{topic}", "partition": partition, "replicas": replicas,
                    "leader": (replicas[0] if is_calm else drawn.choice(replicas)) if says_leaders else None,
                    "isr": isr if says_isr else None, "racks": [racks[broker] for broker in replicas],
                    "min_insync_replicas": least, "elr": [], "offline": None,
                }
            )  # fmt: skip
    if drawn.random() < 0.3:
        RARE[drawn.choice(list(RARE))](drawn, drawn.choice(rows))
    drawn.shuffle(rows)
    return rows


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, SCHEMA.field(name).type) for name in COLUMNS]))


def answered(rows: pa.Table, table: Any, kernel: Kernel, many: Many | None) -> list[dict[str, Any]]:
    found = Work(KEYS, KEYS, answer_table(table, KEYS), kernel, many).answers(rows.to_batches())
    return sorted((row for batch in found for row in batch.to_pylist()), key=str)


@pytest.mark.parametrize("seed", range(60))
def test_many_clusters_have_the_answers_of_each(seed: int) -> None:
    drawn = random.Random(seed)
    rows = table_of([row for number in range(40) for row in drawn_cluster(f"c{number:02d}", drawn)])
    assert answered(rows, balance.MEASURES, balance.measure_rows, measures_of) == answered(
        rows, balance.MEASURES, balance.measure_rows, None
    )
    for least in (None, 1, 2):
        kernel = partial(violations.violation_table, min_insync_replicas=least)
        assert answered(rows, violations.VIOLATIONS, kernel, partial(calm, min_insync_replicas=least)) == answered(
            rows, violations.VIOLATIONS, kernel, None
        )


def outages_with(least: int | None) -> Kernel:
    """What a DataFrame's outages ask of each cluster."""
    return lambda view: outages.outage_table(with_min_isr(view, least))


@pytest.mark.parametrize("least", [None, 1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_many_clusters_have_the_outages_of_each(seed: int, least: int | None) -> None:
    drawn = random.Random(seed)
    rows = table_of([row for number in range(40) for row in drawn_cluster(f"c{number:02d}", drawn)])
    many = partial(outages_of, min_insync_replicas=least)
    assert answered(rows, outages.OUTAGES, outages_with(least), many) == answered(
        rows, outages.OUTAGES, outages_with(least), None
    )


def chunk_of(rows: pa.Table) -> Chunk:
    return Chunk.of(rows, np.cumsum(np.unique(rows["cluster"].to_numpy(), return_counts=True)[1]).astype(np.int64))


@pytest.mark.parametrize("kind", RARE)
def test_a_cluster_with_something_rare_is_not_plain_and_others_are(kind: str) -> None:
    drawn = random.Random(1)
    row = {"topic": "t0", "partition": 0, "replicas": [1, 2], "leader": 1, "isr": [1, 2], "racks": ["a", "b"]}
    rows = [row | {"cluster": name, "partition": number} for name in "abc" for number in (0, 1)]
    RARE[kind](drawn, rows[3])
    is_plain = chunk_of(table_of(rows)).is_plain.tolist()
    assert is_plain == [True, kind == "huge", True]


def test_most_drawn_clusters_are_plain_and_many_of_them_calm() -> None:
    """The comparison above would be none if few clusters went that way."""
    drawn = random.Random(5)
    chunk = chunk_of(table_of([row for number in range(400) for row in drawn_cluster(f"c{number:03d}", drawn)]))
    assert 0.5 < chunk.is_plain.mean() < 0.95
    assert 0.1 < calm(chunk, None)[0].mean() < chunk.is_plain.mean()
    with_racks = np.flatnonzero(chunk.rack_counts > 1)
    assert with_racks.size > 20
    shown, found = outages_of(chunk, None)
    assert 0.3 < shown.mean() < chunk.is_plain.mean()
    assert set(found["scope"].to_pylist()) == {"broker", "rack"}
