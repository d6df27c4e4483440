"""What kernels find: counted as `placement` counts, one row a cluster, errors as rows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import UsageError
from placement.formats.racks import read_racks
from spark_analysis import kernels
from spark_analysis.fleet.count import count_placed, describe_placed
from spark_analysis.fleet.generate import Fleet, SimulatedCluster, make_cluster
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.recipe import RackPlan
from spark_analysis.fleet.views import simulated_view
from spark_analysis.kernels import Kernel, dumps_kernel, fleet_kernel
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables import schemas, view_columns
from spark_analysis.tables.batching import TableBatch, TableBatches
from spark_analysis.tables.cluster_rows import ClusterRows
from spark_analysis.tables.columns import Table
from spark_analysis.tables.limits import VIOLATIONS_MAX
from spark_analysis.tables.view_rows import count_pairs, describe_view
from tests.spark_analysis.fleet.test_fleet import RACKS, SEEDS, recipe

REAL_DUMPS = sorted(Path("tests/real_data/multiregion").glob("*.txt"))
RACKS_FILE = Path("tests/real_data/multiregion-racks.csv")
DESCRIBE = (
    "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: {}\tReplicas: 1,2\tIsr: {}\n"
)


def rows_of(batches: Iterable[TableBatch]) -> dict[Table, pa.Table]:
    """The rows of each table in the batches, in their order."""
    found: dict[Table, list[pa.RecordBatch]] = {}
    for table, batch in batches:
        found.setdefault(table, []).append(batch)
    return {table: pa.Table.from_batches(parts) for table, parts in found.items()}


def tables_of(clusters: Sequence[ClusterRows]) -> dict[Table, pa.Table]:
    """What is found of these clusters, numbered from 0; tables without rows are left out."""
    batches = TableBatches()
    for number, cluster in enumerate(clusters):
        batches.add(number + np.arange(len(cluster.placers)), cluster)
    return rows_of(batches.rest())


def one(cluster: ClusterRows) -> dict[str, Any]:
    """The facts of one cluster, with its rows of each table and measures as plain values, the keys left out."""
    tables = tables_of([cluster])
    rows = {
        table.name: tables[table].to_pylist() if table in tables else []
        for table in (schemas.MEASURES, *cluster.tables)
    }
    (facts,) = tables[schemas.FACTS].to_pylist()
    for row in (facts, *itertools.chain(*rows.values())):
        del row["cluster_id"], row["placer"]
    return facts | rows


def described(cluster: SimulatedCluster, placer: str, seed: int) -> dict[str, Any]:
    placed = place_cluster(cluster, placer, seed=seed)
    return one(describe_placed([count_placed(cluster, placed, placer=placer, source="test")], "test"))


def found_by(kernel: Kernel, *numbers: int) -> Callable[[Table], list[dict[str, Any]]]:
    """The rows of a table that a kernel finds."""
    found = rows_of(kernel(numbers))
    return lambda table: found[table].to_pylist() if table in found else []


@settings(max_examples=2)
@given(SEEDS, RACKS, st.sampled_from([0.0, 0.4]), st.sampled_from(["classic", "striped"]))
def test_a_simulated_cluster_is_described_as_its_view_would_be(
    seed: int, racks: RackPlan, fenced: float, placer: str
) -> None:
    cluster = make_cluster(Fleet.of(recipe(seed, racks, fenced=fenced)), 0)
    found = described(cluster, placer, seed)
    expected = one(describe_view(simulated_view(cluster, place_cluster(cluster, placer, seed=seed), "test")))
    assert found.pop("shape") == cluster.shape.name
    assert expected.pop("shape") is None
    assert (found.pop("known"), json.loads(expected.pop("known"))["down"]) == (None, down_of(cluster))
    assert found == {"racks": []} | expected


def down_of(cluster: Any) -> list[dict[str, Any]]:
    return [{"broker_id": number, "why": "fenced"} for number in np.flatnonzero(cluster.fenced).tolist()]


@settings(max_examples=4)
@given(SEEDS)
def test_pairs_are_counted_as_a_plain_loop_does(seed: int) -> None:
    cluster = make_cluster(Fleet.of(recipe(seed)), 1)
    placed = place_cluster(cluster, "striped", seed=seed)
    expected: dict[tuple[int, int], int] = {}
    for row in placed.tolist():
        held = sorted(number for number in row if number >= 0)
        for place, low in enumerate(held):
            for high in held[place + 1 :]:
                expected[low, high] = expected.get((low, high), 0) + 1
    lows, highs, shared = count_pairs(placed, np.arange(cluster.broker_count, dtype=np.int32)).parts
    assert dict(zip(zip(lows.tolist(), highs.tolist(), strict=True), shared.tolist(), strict=True)) == expected


def test_rows_stand_in_order_of_cluster_and_placer() -> None:
    found = found_by(fleet_kernel(Fleet.of(recipe(5))), *range(6))
    for table in (schemas.BROKERS, schemas.TOPICS, schemas.MEASURES, schemas.FACTS):
        keys = [(row["cluster_id"], row["placer"]) for row in found(table)]
        assert keys == sorted(keys) != []


def test_a_kernel_repeats_its_batches() -> None:
    """Spark runs a kernel again where an executor is lost, or where its rows were put out of memory."""
    kernel = fleet_kernel(Fleet.of(recipe(5)), partitions=True)
    once, again = (
        [(table.name, batch.serialize().to_pybytes()) for table, batch in kernel(range(6))] for _ in range(2)
    )
    assert once == again != []


def test_batches_are_given_out_while_a_kernel_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task holds no more rows than a batch of each table and those of one cluster."""
    monkeypatch.setattr("spark_analysis.tables.batching.HELD_ROWS_MAX", 1)
    kernel = dumps_kernel([[(index, DumpInput(str(path)))] for index, path in enumerate(REAL_DUMPS)], None, None)
    numbers = iter(range(3))
    next(kernel(numbers))
    assert next(numbers) == 1


def test_a_fault_of_a_kernel_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "place_cluster", refusing)
    (row,) = found_by(fleet_kernel(Fleet.of(recipe(5))), 0)(schemas.FAILURES)
    assert (row["what"], row["input_index"], row["is_fatal"]) == ("no such placer", None, True)


def test_a_null_where_none_may_be_is_a_fault() -> None:
    batches = TableBatches()
    batches.append(schemas.REJECTS, [["f"], [1], [None], ["v"]])
    with pytest.raises(UsageError, match=r"^table rejects: column reason may not be null$"):
        list(batches.rest())


def refusing(*_: object, **__: object) -> None:
    raise UsageError("no such placer")


def test_the_dumps_kernel_tells_the_rows_of_each_input_and_what_changed(tmp_path: Path) -> None:
    paths = [tmp_path / "1.txt", tmp_path / "2.txt"]
    for path, text in zip(paths, (DESCRIBE.format(1, "1,2"), DESCRIBE.format(2, "2")), strict=True):
        path.write_text(text, encoding="utf-8")
    inputs = [(index, DumpInput(str(path), name=path.stem, series="s")) for index, path in enumerate(paths)]
    written = found_by(dumps_kernel([inputs], None, 2), 0)
    assert written(schemas.FAILURES) == []
    accounts = written(schemas.INPUTS)
    assert [(row["rows_in"], row["rows_analysed"], row["cluster_count"]) for row in accounts] == [(2, 2, 1)] * 2
    found = written(schemas.CHANGES)
    assert [change["change"] for change in found] == ["leader moved", "ISR shrunk"]
    assert [(change["from_cluster"], change["to_cluster"]) for change in found] == [("1", "2")] * 2
    facts = written(schemas.FACTS)
    assert [(row["cluster_id"], row["under_min_isr_count"]) for row in facts] == [(0, 0), (1, 1)]
    assert [row["previous_cluster_id"] for row in facts] == [None, 0]
    pair = {"placer": "dump", "broker_id": 1, "other_broker_id": 2, "shared_count": 1}
    assert written(schemas.PAIRS) == [{"cluster_id": 0} | pair, {"cluster_id": 1} | pair]


def test_every_partition_of_a_dump_has_a_row_with_all_that_is_wrong(tmp_path: Path) -> None:
    """More under-replicated partitions than are explained, in several batches; the counts are those of the cluster."""
    count, text = 2 * VIOLATIONS_MAX + 7, tmp_path / "d.txt"
    lines = [
        f"\tTopic: t\tPartition: {number}\tLeader: {'none' if number == 3 else 2}\tReplicas: 1,2\tIsr: 2\n"
        for number in range(count)
    ]
    head = f"Topic: t\tPartitionCount: {count}\tReplicationFactor: 2\tConfigs: min.insync.replicas=1\n"
    text.write_text(head + "".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_columns, "BATCH_ROWS", 10)
        written = found_by(dumps_kernel([[(0, DumpInput(str(text)))]], None, 2), 0)
    assert written(schemas.FAILURES) == []
    rows, (facts,) = written(schemas.PARTITIONS), written(schemas.FACTS)
    assert [row["partition"] for row in rows] == list(range(count))
    assert facts["under_replicated_count"] == sum(row["under_replicated"] for row in rows) == count
    assert [row["partition"] for row in rows if row["leaderless"]] == [3]
    assert (rows[3]["leader"], rows[4]["leader"]) == (-1, 2)
    assert rows[3]["broken"] == ["leaderless", "under-min-isr", "at-min-isr", "under-replicated"]
    assert rows[4]["broken"] == ["sole-copy", "at-min-isr", "under-replicated", "not-preferred-leader"]
    assert {tuple(row["missing_from_isr"]) for row in rows} == {(1,)}
    assert {(row["cluster"], row["topic"], row["fewer_racks"], row["size_bytes"]) for row in rows} == {
        (str(text), "t", None, None)
    }
    # Partition 3 has no leader until broker 2, its whole ISR, is back: broker 1 alone does not explain it.
    assert (facts["out_of_sync_brokers"], facts["out_of_sync_explained_count"]) == ([1], count - 1)
    held = written(schemas.BROKERS)
    assert [(row["broker_id"], row["missing_from_isr_count"]) for row in held] == [(1, count), (2, 0)]


@pytest.mark.parametrize("path", REAL_DUMPS, ids=lambda path: path.name)
def test_partitions_and_counts_of_a_real_dump_agree(path: Path) -> None:
    racks = read_racks(RACKS_FILE.read_bytes(), source="racks")
    written = found_by(dumps_kernel([[(0, DumpInput(str(path)))]], racks, None), 0)
    assert written(schemas.FAILURES) == []
    rows, (facts,) = written(schemas.PARTITIONS), written(schemas.FACTS)
    for column in (one.name for one in schemas.PARTITIONS.columns if one.type == "boolean"):
        known = [row[column] for row in rows if row[column] is not None]
        assert facts[f"{column}_count"] == (sum(known) if known else None), column
    assert facts["violation_count"] == sum(len(row["broken"]) for row in rows)
    for row in rows:
        assert set(row["missing_from_isr"]) <= set(row["replicas"]) - set(row["isr"])
        assert len(row["racks"]) == len(row["replicas"])
