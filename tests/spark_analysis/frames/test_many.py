"""What is answered for many clusters at once is what each cluster alone is answered."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker.cluster import ClusterView
from broker.clusters import Clusters
from broker.min_isr import with_min_isr, with_min_isr_of
from placement.balance.reachable import Classes, Groups, Optimum
from placement.balance.shares import QUANTITIES, Held
from placement.outages.look_ahead import RACK, SINGLE, look_ahead, sweep_table, worst
from spark_analysis.frames.answering import Kernel, Many, Work, answer_table
from spark_analysis.frames.listed_brokers import BROKER_PREFIX, OF_BROKER
from spark_analysis.questions import balance, outages, violations
from spark_analysis.tables.columns import IN_BATCH
from spark_analysis.tables.outage_rows import check_outages, outage_rows
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


def answered(rows: pa.Table, table: Any, kernel: Kernel | None, many: Many | None) -> list[dict[str, Any]]:
    found = Work(KEYS, KEYS, answer_table(table, KEYS), kernel, many).answers(rows.to_batches())
    return sorted((row for batch in found for row in batch.to_pylist()), key=str)


def losses(view: ClusterView) -> Iterator[dict[str, Any]]:
    """The losses of each broker and rack, the worst first, as the look-ahead of one cluster finds them."""
    found = look_ahead(view, pairs=False)
    states = ("leaderless_count", "under_min_isr_count", "no_replica_count", "at_risk_count")
    now = {f"{name}_now": getattr(found.now, name) for name in states}
    for scope, name in (("broker", SINGLE), ("rack", RACK)):
        sweep = next(each for each in found.sweeps if each.scope == name)
        rows = sweep_table(view, sweep).take(worst(sweep, None)).to_pylist() if sweep.count else []
        for rank, row in enumerate(rows, start=1):
            yield row | now | {"scope": scope, "notes": list(found.notes), "severity_rank": rank}


def outages_with(least: int | None) -> Kernel:
    """What one cluster is asked."""
    schema = pa.schema([pa.field(field.name, field.type) for field in list(outages.OUTAGES.arrow_schema())[2:]])

    def kernel(view: ClusterView) -> pa.Table:
        check_outages(Clusters.of_view(view))
        return pa.Table.from_pylist(list(losses(with_min_isr(view, least))), schema=schema)

    return kernel


def violations_with(least: int | None) -> Many:
    return lambda clusters: violations.violations_of(with_min_isr_of(clusters, least))


def asked() -> list[tuple[Any, Many]]:
    """The questions that are answered about all clusters of a batch."""
    found: list[tuple[Any, Many]] = [(balance.MEASURES, balance.measures_of), (balance.CLUSTERS, balance.clusters_of)]
    return [*found, *((violations.VIOLATIONS, violations_with(least)) for least in (None, 1, 2))]


def alone(rows: pa.Table, table: Any, many: Many) -> list[dict[str, Any]]:
    """The answers on each cluster in a batch of its own."""
    names = rows["cluster"].unique().to_pylist()
    answers = (answered(rows.filter(pc.equal(rows["cluster"], name)), table, None, many) for name in names)
    return sorted((row for some in answers for row in some), key=str)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("with_brokers", [False, True])
def test_many_clusters_have_the_answers_of_each(seed: int, with_brokers: bool) -> None:
    drawn = random.Random(seed)
    clusters = [drawn_cluster(f"c{number:02d}", drawn) for number in range(16)]
    clusters[-1][0].update(fault="cut off")  # Some draws have no fault of their own.
    rows = both(clusters, drawn) if with_brokers else table_of([row for one in clusters for row in one])
    for table, many in asked():
        found = answered(rows, table, None, many)
        assert found == alone(rows, table, many)
        assert len({row["cluster"] for row in found if row["fault"] is None}) > 3
    for least in (None, 1, 2):
        found = answered(rows, outages.OUTAGES, None, lambda of, least=least: outage_rows(with_min_isr_of(of, least)))
        assert found == answered(rows, outages.OUTAGES, outages_with(least), None)
        assert {row["scope"] for row in found} == {"broker", "rack", None}  # A fault has no scope.


def test_a_cluster_that_contradicts_itself_costs_no_other_its_answer() -> None:
    drawn = random.Random(3)
    clusters = [drawn_cluster(f"c{number:02d}", random.Random(number)) for number in range(9)]
    for row in clusters[4]:
        row.update(partition=0, topic="t0", fault=None)
    rows = table_of([row for one in clusters for row in one])
    found = answered(rows, balance.CLUSTERS, None, balance.clusters_of)
    listed_twice = [
        row for row in found if row["fault"] is not None and "listed twice in cluster 'c04'" in row["fault"]
    ]
    assert [row["rejected_count"] for row in listed_twice] == [len(clusters[4])]
    others = {row["cluster"] for row in found if row["fault"] is None}
    assert len(others) >= 6, drawn


@pytest.mark.parametrize("seed", SEEDS)
def test_optima_of_many_clusters_are_those_of_each(seed: int) -> None:
    """Uneven racks, brokers without one, fenced ones that bar their rack, and every quantity."""
    drawn = random.Random(seed)
    sound = [
        one for one in (drawn_cluster(f"c{number:03d}", drawn) for number in range(150)) if "fault" not in str(one)
    ]
    seen = set()

    def compared(clusters: Clusters) -> pa.Table:
        held = Held.of(clusters)
        places = np.arange(clusters.count)
        for place, found in held.optima(places).items():
            view = clusters.one(place)
            groups = Groups.of_view(view)
            alone = Optimum(groups, Classes.of_view(view, groups))
            assert found.groups.rack_count == groups.rack_count
            assert found.groups.is_ruled == groups.is_ruled
            for quantity, over_racks in itertools.product(QUANTITIES, (False, True)):
                one, other = (each.reach(quantity, over_racks=over_racks) for each in (found, alone))
                assert str(one) == str(other)
                seen.add((clusters.count > 1, quantity, over_racks, one is None, bool((groups.barred_by >= 0).any())))
        return pa.table({IN_BATCH: pa.array([], pa.int64())})

    answered(both(sound, drawn), balance.MEASURES, None, compared)
    for over_racks, is_barred in itertools.product((False, True), repeat=2):
        assert (True, "replicas", over_racks, False, is_barred) in seen


def test_a_cluster_taken_out_of_many_is_what_its_rows_say() -> None:
    drawn = random.Random(11)
    plain = [one for one in (drawn_cluster(f"c{number:02d}", drawn) for number in range(30)) if "fault" not in str(one)]
    views: dict[str, list[ClusterView]] = {}

    def taken(clusters: Clusters) -> pa.Table:
        for place, name in enumerate(clusters.names):
            views.setdefault(name, []).append(clusters.one(place))
        return pa.table({IN_BATCH: pa.array([], pa.int64())})

    rows = table_of([row for one in plain for row in one])
    answered(rows, balance.MEASURES, None, taken)
    alone(rows, balance.MEASURES, taken)
    assert len(views) > 10
    for one, other in (found for found in views.values() if len(found) == 2):
        assert (one.brokers, one.topics, one.name) == (other.brokers, other.topics, other.name)
        for field in ("replicas", "leader", "topic_index", "partition_ids"):
            columns = [getattr(view.partitions, field) for view in (one, other)]
            assert (columns[0] is None) == (columns[1] is None)
            if columns[0] is not None and columns[0].ndim == 2:
                width = columns[1].shape[1]
                assert (columns[0][:, width:] == -1).all()
                columns[0] = columns[0][:, :width]
            assert columns[0] is None or np.array_equal(columns[0], columns[1])
