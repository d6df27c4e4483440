"""Tables as a job would write them: small, deterministic, varied, and hostile.

Replicas are placed by a plain round robin (even) or by a hash (uneven), so that the two
placers of a sample fleet differ; the measures come from `placement.balance.measures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from broker.cluster import BROKER_FLAGS
from placement.balance.measures import distribution
from spark_analysis.report.model import RunInfo
from spark_analysis.tables import schemas
from spark_analysis.tables.scan import WHOLE_NAME

FLEET_RUN: Final = RunInfo(
    kind="fleet",
    title="Three zones, uneven",
    command="brokerside fleet three-zones.toml --out OUT",
    version="0.1.0",
    recipe_text='[fleet]\nname = "three zones, uneven"\nclusters = 500\nseed = 42\n',
    seed=42,
)
DUMPS_RUN: Final = RunInfo(
    kind="dumps", title="Six dumps of one cluster", command="brokerside report dumps/*.txt --out OUT", version="0.1.0"
)
SCRIPT: Final = "<script>alert(1)</script>"
CLOSER: Final = '"]</script><img src=x onerror=alert(2)>'
CONTROLS: Final = "a\x1b[31mred\u202e[bold]b\ud800"

Rows = dict[str, list[dict[str, Any]]]


def write_tables(out: Path, rows: Rows, *, file_count: int = 1) -> Path:
    """Write every table of `rows` under `out`/tables in so many files; tables that are not named are left out."""
    for table in schemas.TABLES:
        if table.name not in rows:
            continue
        folder = out / "tables" / table.name
        folder.mkdir(parents=True)
        for number in range(file_count):
            part = rows[table.name][number::file_count]
            pq.write_table(pa.Table.from_pylist(part, schema=table.arrow_schema()), folder / f"part-{number}.parquet")
        (folder / WHOLE_NAME).touch()
    return out


def empty_rows() -> Rows:
    """Return every table, without rows."""
    return {table.name: [] for table in schemas.TABLES}


@attrs.frozen(kw_only=True)
class Sample:
    """One cluster to be made up."""

    cluster_id: int
    placer: str = "classic"
    name: str = ""
    shape: str | None = "even"
    broker_count: int = 6
    racks: tuple[str, ...] = ("a", "b", "c")
    topic_count: int = 8
    partition_count: int = 12
    factor: int = 3
    uneven: int = 0
    sizes: bool = True
    fenced: int = 0


def noise(seed: int, count: int, below: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return `count` numbers in 0..below-1, the same for the same seed."""
    state = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed * 1_000_003)) * np.uint64(0x9E3779B97F4A7C15)
    state ^= state >> np.uint64(31)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(29)
    return (state % np.uint64(below)).astype(np.int64)


def placed(sample: Sample) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return int64[partitions, factor] of broker places: round robin, `uneven` per cent of rows moved by noise."""
    count = sample.topic_count * sample.partition_count
    factor = min(sample.factor, sample.broker_count)
    first = np.arange(count) % sample.broker_count
    moved = noise(sample.cluster_id, count, 100) < sample.uneven
    drawn = noise(sample.cluster_id + 7, count, sample.broker_count)
    first = np.where(moved, np.minimum(drawn, noise(sample.cluster_id + 9, count, sample.broker_count)), first)
    return (first[:, None] + np.arange(factor)[None, :]) % sample.broker_count


def add_cluster(rows: Rows, sample: Sample, *, rank: int, pairs: bool = False, **facts: Any) -> None:
    """Add one cluster to every table; `facts` overrides columns of its row in the table of clusters."""
    replicas = placed(sample)
    size = (noise(sample.cluster_id + 3, replicas.shape[0], 10_000) + 1) * 1_048_576
    key = {"cluster_id": sample.cluster_id, "placer": sample.placer}
    brokers = sample.broker_count
    loads = {
        "replica_count": np.bincount(replicas.ravel(), minlength=brokers),
        "leader_count": np.bincount(replicas[:, 0], minlength=brokers),
        "size_bytes": np.bincount(
            replicas.ravel(), weights=np.repeat(size, replicas.shape[1]), minlength=brokers
        ).astype(np.int64),
    }
    if not sample.sizes:
        del loads["size_bytes"]
    rack_of = [sample.racks[place % len(sample.racks)] if sample.racks else None for place in range(brokers)]
    rows["clusters"].append(key | _facts(sample, loads, replicas, rank, rack_of) | facts)
    for place in range(brokers):
        held = {name: int(column[place]) for name, column in loads.items()}
        rows["brokers"].append(
            key
            | {"broker_id": place + 1, "rack": rack_of[place], "fenced": place < sample.fenced, "size_bytes": None}
            | dict.fromkeys(BROKER_FLAGS[1:], False)
            | held
        )
    _add_measures(rows, key, loads, rack_of)
    _add_racks(rows, key, loads, rack_of)
    _add_topics(rows, key, sample, replicas, size)
    if pairs:
        _add_pairs(rows, key, replicas)


def _facts(
    sample: Sample, loads: dict[str, Any], replicas: Any, rank: int, rack_of: Sequence[str | None]
) -> dict[str, Any]:
    sizes = [rack_of.count(rack) for rack in sorted(set(rack_of) - {None}, key=str)]
    return {
        "cluster": sample.name or f"fleet-{sample.cluster_id}",
        "source": "three-zones",
        "format": "simulated",
        "shape": sample.shape,
        "broker_count": sample.broker_count,
        "fenced_broker_count": sample.fenced,
        "unracked_broker_count": rack_of.count(None),
        "rack_count": len(sizes),
        "rack_broker_count_min": min(sizes, default=None),
        "rack_broker_count_max": max(sizes, default=None),
        "topic_count": sample.topic_count,
        "partition_count": replicas.shape[0],
        "replica_count": int(replicas.size),
        "size_bytes": int(loads["size_bytes"].sum()) if "size_bytes" in loads else None,
        "leaderless_count": None,
        "sole_copy_count": None,
        "under_min_isr_count": None,
        "at_min_isr_count": None,
        "under_replicated_count": None,
        "not_preferred_leader_count": None,
        "fewer_racks_count": 0 if sizes else None,
        "violation_count": 0,
        "rank": rank,
    }


_QUANTITY: Final = {"replica_count": "replicas", "leader_count": "leaders", "size_bytes": "bytes"}


def _add_measures(rows: Rows, key: dict[str, Any], loads: dict[str, Any], rack_of: Sequence[str | None]) -> None:
    racks = sorted({rack for rack in rack_of if rack is not None})
    for column, shares in loads.items():
        names = [str(place + 1) for place in range(shares.size)]
        figures = attrs.asdict(distribution(shares.astype(np.int64), names=names))
        rows["measures"].append(key | {"scope": "broker", "quantity": _QUANTITY[column]} | figures)
        if racks:
            by_rack = np.array(
                [sum(int(n) for n, r in zip(shares, rack_of, strict=True) if r == rack) for rack in racks]
            )
            figures = attrs.asdict(distribution(by_rack, names=racks))
            rows["measures"].append(key | {"scope": "rack", "quantity": _QUANTITY[column]} | figures)


def _add_racks(rows: Rows, key: dict[str, Any], loads: dict[str, Any], rack_of: Sequence[str | None]) -> None:
    for rack in sorted(set(rack_of), key=str):
        members = [place for place, name in enumerate(rack_of) if name == rack]
        held = {name: int(column[members].sum()) for name, column in loads.items()}
        rows["racks"].append(key | {"rack": rack, "broker_count": len(members), "size_bytes": None} | held)


def _add_topics(rows: Rows, key: dict[str, Any], sample: Sample, replicas: Any, size: Any) -> None:
    for topic in range(sample.topic_count):
        part = replicas[topic * sample.partition_count : (topic + 1) * sample.partition_count]
        held = np.bincount(part.ravel(), minlength=sample.broker_count)
        led = np.bincount(part[:, 0], minlength=sample.broker_count)
        rows["topics"].append(
            key
            | {
                "topic": f"topic-{topic}",
                "partition_count": sample.partition_count,
                "replication_factor": part.shape[1],
                "min_insync_replicas": 2,
                "replica_count": int(part.size),
                "size_bytes": int(size[: sample.partition_count].sum()) if sample.sizes else None,
                "broker_count": int(np.count_nonzero(held)),
                "replica_max": int(held.max()),
                "replica_best_max": -(-int(held.sum()) // len(held)),
                "replica_moves": distribution(held).moves,
                "replica_moves_exact": distribution(held).moves_exact,
                "leader_max": int(led.max()),
                "leader_best_max": -(-int(led.sum()) // len(led)),
                "leader_moves": distribution(led).moves,
                "leader_moves_exact": distribution(led).moves_exact,
            }
        )


def _add_pairs(rows: Rows, key: dict[str, Any], replicas: Any) -> None:
    shared: dict[tuple[int, int], int] = {}
    for row in replicas.tolist():
        for one, other in combinations(sorted(row), 2):
            shared[one + 1, other + 1] = shared.get((one + 1, other + 1), 0) + 1
    rows["pairs"] += [
        key | {"broker_id": one, "other_broker_id": other, "shared_count": shared[one, other]}
        for one, other in sorted(shared)
    ]


def fleet_rows(cluster_count: int = 500, *, pairs_of: int = 200, brokers_max: int = 60) -> Rows:
    """Return a fleet of two placers and two shapes; the first `pairs_of` ranks have pairs."""
    rows = empty_rows()
    rank = 0
    for cluster_id in range(cluster_count):
        brokers = 6 + int(noise(5, cluster_count, brokers_max - 5)[cluster_id]) if brokers_max > 6 else brokers_max
        uneven = cluster_id % 5 == 4
        racks = ("az1", "az1", "az2", "az2", "az3") if uneven else ("az1", "az2", "az3")
        for placer, noisy in (("striped", 30), ("classic", cluster_id % 23)):
            rank += 1
            sample = Sample(
                cluster_id=cluster_id, placer=placer, shape="uneven racks" if uneven else "even racks", racks=racks,
                broker_count=brokers, partition_count=24, uneven=noisy, fenced=int(cluster_id % 9 == 0),
            )  # fmt: skip
            broken = 24 - cluster_id if placer == "classic" and uneven and cluster_id < 24 else 0
            add_cluster(
                rows, sample, rank=rank, pairs=rank <= pairs_of, fewer_racks_count=broken, violation_count=broken
            )
            _add_rack_violations(rows, sample, broken)
    rows["inputs"].append(input_row("three-zones", "recipe", cluster_count, cluster_count))
    return rows


def _add_rack_violations(rows: Rows, sample: Sample, count: int) -> None:
    for partition in range(count):
        rows["violations"].append(
            {
                "cluster_id": sample.cluster_id,
                "placer": sample.placer,
                "constraint": "rack-spread",
                "topic": "topic-1",
                "partition": partition,
                "brokers": [1, 2, 6],
                "racks": ["az1", "az1", "az1"],
                "detail": "stands on 1 rack; 3 are possible",
            }
        )


def input_row(
    source: str, form: str, clusters: int, rows_in: int, rejected: int = 0, notes: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a row of the table of inputs."""
    return {
        "source": source, "format": form, "cluster_count": clusters, "rows_in": rows_in,
        "rows_analysed": rows_in - rejected, "rows_rejected": rejected, "lines_passed_over": 2, "notes": list(notes),
    }  # fmt: skip


DUMP_NAMES: Final = (
    "1-baseline",
    "2-one-broker-lost",
    "3-region-lost",
    "4-unclean-election",
    "5-switched",
    "6-restored",
)


def dumps_rows() -> Rows:
    """Return six dumps of one small cluster: a broker lost, a region lost, an unclean election, and all restored."""
    rows = empty_rows()
    states = ((0, 0, 0, 0), (0, 0, 1, 4), (6, 6, 0, 9), (0, 6, 0, 9), (0, 0, 2, 5), (0, 0, 0, 0))
    order = {2: 1, 3: 2, 4: 3, 1: 4, 0: 5, 5: 6}
    for number, name in enumerate(DUMP_NAMES):
        leaderless, under_min, at_min, under = states[number]
        sample = Sample(
            cluster_id=number, placer="dump", name=name, shape=None, broker_count=6, racks=("west", "east"),
            topic_count=3, partition_count=4, sizes=False, uneven=40,
        )  # fmt: skip
        add_cluster(
            rows, sample, rank=order[number], pairs=True, source=f"{name}.txt", format="kafka-topics",
            leaderless_count=leaderless, sole_copy_count=0, under_min_isr_count=under_min,
            at_min_isr_count=at_min,
            under_replicated_count=under, not_preferred_leader_count=2 if number else None,
            fewer_racks_count=3, violation_count=leaderless + under, previous_cluster_id=number - 1 if number else None,
        )  # fmt: skip
        for partition in range(leaderless):
            rows["violations"].append(
                {
                    "cluster_id": number, "placer": "dump", "constraint": "leaderless", "topic": "topic-2",
                    "partition": partition, "brokers": [1, 2], "racks": ["west", ""],
                    "detail": "no replica is in sync and alive",
                }
            )  # fmt: skip
        rows["inputs"].append(input_row(f"{name}.txt", "kafka-topics", 1, 15, rejected=int(number == 1)))
    rows["rejects"].append(
        {"source": "2-one-broker-lost.txt", "line": 7, "reason": "broker id is not a number", "value": "x"}
    )
    _add_changes(rows)
    return rows


def _add_changes(rows: Rows) -> None:
    for step, change, count in (
        (1, "ISR shrunk", 4),
        (2, "leader lost", 6),
        (3, "unclean election", 6),
        (4, "replicas changed", 3),
        (5, "ISR grown", 9),
    ):
        for partition in range(count):
            rows["changes"].append(
                {
                    "from_cluster": DUMP_NAMES[step - 1], "to_cluster": DUMP_NAMES[step], "topic": "topic-2",
                    "partition": partition, "change": change,
                    "detail": "leader none, ISR 1 → leader 4, ISR 4",
                }
            )  # fmt: skip


def hostile_rows() -> Rows:
    """Return one dump in which every string is somebody's attempt to be more than a name; some values are null."""
    rows = empty_rows()
    sample = Sample(cluster_id=0, placer="dump", name=SCRIPT, shape=None, racks=(CLOSER, CONTROLS), sizes=False)
    add_cluster(rows, sample, rank=1, pairs=True, source=CLOSER, format=SCRIPT, leaderless_count=1, violation_count=1)
    other = Sample(cluster_id=1, placer="dump", name=CONTROLS, shape=CLOSER, racks=(), sizes=False)
    add_cluster(rows, other, rank=2, source=SCRIPT, topic_count=None, partition_count=None, replica_count=None)
    for row in rows["topics"]:
        row["topic"] = SCRIPT + row["topic"]
    rows["violations"].append(
        {"cluster_id": 0, "placer": "dump", "constraint": SCRIPT, "topic": CLOSER, "partition": 0, "brokers": [1],
         "racks": [SCRIPT], "detail": CLOSER}
    )  # fmt: skip
    rows["rejects"].append({"source": SCRIPT, "line": None, "reason": CLOSER, "value": CONTROLS})
    rows["inputs"].append(input_row(CLOSER, SCRIPT, 2, 10, rejected=1, notes=[SCRIPT, CONTROLS]))
    rows["changes"].append({"from_cluster": SCRIPT, "to_cluster": CONTROLS, "topic": CLOSER, "partition": 1,
                            "change": SCRIPT, "detail": CLOSER})  # fmt: skip
    for name, table in rows.items():
        rows[name] = [_encodable(row) for row in table]
    return rows


def _encodable(row: dict[str, Any]) -> dict[str, Any]:
    """Parquet holds UTF-8: an unpaired surrogate cannot reach the report that way."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(part) for part in value]
        return value.replace("\ud800", "") if isinstance(value, str) else value

    return {name: plain(value) for name, value in row.items()}
