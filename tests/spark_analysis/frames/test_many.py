"""What is answered for many clusters at once is what each cluster alone is answered."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker.min_isr import with_min_isr
from spark_analysis.frames.answering import Kernel, Work, answer_table
from spark_analysis.frames.chunks import Chunk
from spark_analysis.frames.listed_brokers import BROKER_PREFIX, OF_BROKER
from spark_analysis.frames.many import Many, measures_of, unbroken
from spark_analysis.frames.many_outages import outages_of
from spark_analysis.questions import balance, outages, violations
from spark_analysis.tables.schemas import CLUSTER_BROKERS, CLUSTER_PARTITIONS

KEYS = ("cluster",)
SCHEMA = CLUSTER_PARTITIONS.arrow_schema()
OF_BROKERS = CLUSTER_BROKERS.arrow_schema()
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 25))]
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
RARE_BROKERS: dict[str, Callable[[dict[str, Any]], None]] = {
    "no id": lambda row: row.update(broker_id=None),
    "negative": lambda row: row.update(broker_id=-3),
    "fenced": lambda row: row.update(fenced=True),
    "cordoned": lambda row: row.update(cordoned=True),
    "shutting down": lambda row: row.update(in_controlled_shutdown=True),
    "a fault": lambda row: row.update(fault="cut off"),
    "holds more": lambda row: row.update(replica_count=1_000),
    "another rack": lambda row: row.update(rack="elsewhere"),
    "no rack": lambda row: row.update(rack=""),
    "rack not said": lambda row: row.update(rack=None),
}


def drawn_cluster(name: str, drawn: random.Random) -> list[dict[str, Any]]:
    """A cluster: mostly in order, sometimes with something rare in a row."""
    broker_count = drawn.randint(1, 7)
    ids = sorted(drawn.sample(range(20), broker_count))
    rack_count = drawn.choice((0, 0, 1, 2, 3))
    racks = {broker: f"r{place % rack_count}" if rack_count else "" for place, broker in enumerate(ids)}
    is_healthy, says_leaders, says_isr = (drawn.random() < 0.7 for _ in range(3))
    rows = []
    for topic in range(drawn.randint(1, 3)):
        factor, least = drawn.randint(1, min(3, broker_count)), drawn.choice((None, 1, 2))
        for partition in range(drawn.randint(1, 5)):
            replicas = drawn.sample(ids, factor)
            isr = replicas if is_healthy else drawn.sample(replicas, drawn.randint(1, factor))
            rows.append(
                {
                    "cluster": name, "topic": f"t{topic}", "partition": partition, "replicas": replicas,
                    "leader": (replicas[0] if is_healthy else drawn.choice(replicas)) if says_leaders else None,
                    "isr": isr if says_isr else None, "racks": [racks[broker] for broker in replicas],
                    "min_insync_replicas": least, "elr": [], "offline": None,
                }
            )  # fmt: skip
    if drawn.random() < 0.3:
        RARE[drawn.choice(list(RARE))](drawn, drawn.choice(rows))
    drawn.shuffle(rows)
    return rows


BROKER_COLUMNS = (
    "cluster",
    "broker_id",
    "rack",
    "fenced",
    "cordoned",
    "in_controlled_shutdown",
    "replica_count",
    "fault",
)


def drawn_brokers(rows: list[dict[str, Any]], drawn: random.Random) -> list[dict[str, Any]]:
    """The brokers of a cluster: mostly all of them in order, and one that holds nothing."""
    held = [broker for row in rows for broker in row["replicas"] if broker is not None]
    racks = {broker: rack for row in rows for broker, rack in zip(row["replicas"], row["racks"], strict=False)}
    ids = sorted({*held, *drawn.sample(range(20, 24), drawn.choice((0, 0, 1, 2)))})
    if drawn.random() < 0.2:
        ids = drawn.sample(ids, drawn.randint(0, len(ids)))
    names = sorted(set(racks.values()) - {None}) or [""]
    brokers = [
        {
            "cluster": rows[0]["cluster"], "broker_id": broker, "rack": racks.get(broker) or drawn.choice(names),
            "fenced": drawn.choice((False, None)), "cordoned": False, "in_controlled_shutdown": None,
            "replica_count": held.count(broker) if broker % 7 else None,
        }
        for broker in ids
    ]  # fmt: skip
    if brokers and drawn.random() < 0.3:
        RARE_BROKERS[drawn.choice(list(RARE_BROKERS))](drawn.choice(brokers))
    if brokers and drawn.random() < 0.05:
        brokers.append(dict(drawn.choice(brokers)))
    drawn.shuffle(brokers)
    return brokers


def both(clusters: list[list[dict[str, Any]]], drawn: random.Random) -> pa.Table:
    """Rows of partitions and of brokers as a task has them, those of a cluster together in any order."""
    fields = [pa.field("cluster", pa.string())]
    fields += [SCHEMA.field(name) for name in COLUMNS if name != "cluster"]
    fields += [OF_BROKERS.field(name).with_name(BROKER_PREFIX + name) for name in BROKER_COLUMNS if name != "cluster"]
    fields.append(pa.field(OF_BROKER, pa.bool_()))
    rows = []
    for one in clusters:
        listed = [
            {BROKER_PREFIX + name: value for name, value in row.items()} | {"cluster": row["cluster"], OF_BROKER: True}
            for row in drawn_brokers(one, drawn)
        ]
        mixed = [*(row | {OF_BROKER: False} for row in one), *listed]
        drawn.shuffle(mixed)
        rows += mixed
    return pa.Table.from_pylist(rows, schema=pa.schema([field.with_nullable(True) for field in fields]))


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, SCHEMA.field(name).type) for name in COLUMNS]))


def answered(rows: pa.Table, table: Any, kernel: Kernel, many: Many | None) -> list[dict[str, Any]]:
    found = Work(KEYS, KEYS, answer_table(table, KEYS), kernel, many).answers(rows.to_batches())
    return sorted((row for batch in found for row in batch.to_pylist()), key=str)


@pytest.mark.parametrize("seed", SEEDS)
def test_many_clusters_have_the_answers_of_each(seed: int) -> None:
    drawn = random.Random(seed)
    rows = table_of([row for number in range(24) for row in drawn_cluster(f"c{number:02d}", drawn)])
    assert answered(rows, balance.MEASURES, balance.measure_rows, measures_of) == answered(
        rows, balance.MEASURES, balance.measure_rows, None
    )
    for least in (None, 1, 2):
        kernel = partial(violations.violation_table, min_insync_replicas=least)
        assert answered(rows, violations.VIOLATIONS, kernel, partial(unbroken, min_insync_replicas=least)) == answered(
            rows, violations.VIOLATIONS, kernel, None
        )


def outages_with(least: int | None) -> Kernel:
    """What a DataFrame's outages ask of each cluster."""
    return lambda view: outages.outage_table(with_min_isr(view, least))


@pytest.mark.parametrize("seed", SEEDS)
def test_many_clusters_with_their_brokers_have_the_answers_of_each(seed: int) -> None:
    drawn = random.Random(1000 + seed)
    rows = both([drawn_cluster(f"c{number:02d}", drawn) for number in range(8)], drawn)
    asked: list[tuple[Any, Kernel, Many]] = [(balance.MEASURES, balance.measure_rows, measures_of)]
    for least in (None, 1, 2):
        broken = partial(violations.violation_table, min_insync_replicas=least)
        asked.append((violations.VIOLATIONS, broken, partial(unbroken, min_insync_replicas=least)))
        asked.append((outages.OUTAGES, outages_with(least), partial(outages_of, min_insync_replicas=least)))
    for table, kernel, many in asked:
        assert answered(rows, table, kernel, many) == answered(rows, table, kernel, None)


def chunk_of(rows: pa.Table) -> Chunk:
    return Chunk.of(rows, np.cumsum(np.unique(rows["cluster"].to_numpy(), return_counts=True)[1]).astype(np.int64))


def test_a_cluster_with_an_isr_on_other_brokers_than_the_replicas_is_not_plain() -> None:
    """Broker 3 is one of the cluster, but holds nothing of the partition."""
    row = {"topic": "t0", "leader": 2, "isr": [2], "racks": ["", ""]}
    rows = [
        row | {"cluster": name, "partition": number, "replicas": replicas}
        for name in "ab"
        for number, replicas in enumerate(([1, 2], [2, 3]))
    ]
    rows[2]["isr"] = [2, 3]
    assert chunk_of(table_of(rows)).is_regular.tolist() == [True, False]


def test_most_drawn_clusters_are_plain_and_many_of_them_unbroken() -> None:
    """The comparison above would be none if few clusters went that way."""
    drawn = random.Random(5)
    chunk = chunk_of(table_of([row for number in range(400) for row in drawn_cluster(f"c{number:03d}", drawn)]))
    assert 0.5 < chunk.is_regular.mean() < 0.95
    assert 0.1 < unbroken(chunk, None)[0].mean() < chunk.is_regular.mean()
    with_racks = np.flatnonzero(chunk.rack_counts > 1)
    assert with_racks.size > 20
    shown, found = outages_of(chunk, None)
    assert 0.3 < shown.mean() < chunk.is_regular.mean()
    assert set(found["scope"].to_pylist()) == {"broker", "rack"}


def test_most_drawn_clusters_with_brokers_are_plain_too() -> None:
    drawn = random.Random(6)
    rows = both([drawn_cluster(f"c{number:03d}", drawn) for number in range(400)], drawn)
    chunk = chunk_of(rows)
    assert 0.3 < chunk.is_regular.mean() < 0.9
    assert unbroken(chunk, None)[0].mean() > 0.05
    held = np.unique(chunk.replicas[chunk.replicas >= 0]).size
    assert chunk.broker_ids.size > held > 0
