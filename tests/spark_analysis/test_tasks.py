"""What executors hand over: counted as `placement` counts, one row a cluster, errors as rows."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import UsageError
from placement.formats.racks import read_racks
from spark_analysis import tasks
from spark_analysis.engines import RESULT_SCHEMA, Task
from spark_analysis.fleet.count import count_placed, describe_placed
from spark_analysis.fleet.generate import Fleet, SimulatedCluster, make_cluster
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.recipe import RackPlan
from spark_analysis.fleet.views import simulated_view
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables import schemas, view_columns
from spark_analysis.tables.cluster_rows import ClusterRows
from spark_analysis.tables.columns import Table
from spark_analysis.tables.limits import VIOLATIONS_MAX
from spark_analysis.tables.staging import TaskWriter
from spark_analysis.tables.view_rows import count_pairs, describe_view
from spark_analysis.tables.write import COUNT_FOLDER
from spark_analysis.tasks import dumps_task, fleet_task
from tests.spark_analysis.fleet.test_fleet import RACKS, SEEDS, recipe

REAL_DUMPS = Path("tests/real_data/multiregion").glob("*.txt")
RACKS_FILE = Path("tests/real_data/multiregion-racks.csv")
DESCRIBE = (
    "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: {}\tReplicas: 1,2\tIsr: {}\n"
)


def tables_of(clusters: Sequence[ClusterRows]) -> dict[Table, pa.Table]:
    """What is written of these clusters, numbered from 0; tables without rows are left out."""
    with tempfile.TemporaryDirectory() as name:
        root = run_root(Path(name))
        with TaskWriter(root, "part") as writer:
            for number, cluster in enumerate(clusters):
                writer.add(number + np.arange(len(cluster.placers)), cluster)
            kept = {one.table for one in writer.close()}
        tables = (*schemas.TABLES, *schemas.WORK)
        return {table: pq.read_table(root / table.name) for table in tables if table.name in kept}


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


def run_root(path: Path) -> Path:
    """A folder such as tasks write to."""
    for name in (*(table.name for table in (*schemas.TABLES, *schemas.WORK)), COUNT_FOLDER):
        (path / name).mkdir(parents=True)
    return path


def results_of(task: Task, *values: int) -> list[dict[str, Any]]:
    """The rows as a driver gets them."""
    results: list[dict[str, Any]] = pa.Table.from_pylist(task(values, "00000"), schema=RESULT_SCHEMA).to_pylist()
    return results


def written(root: Path, table: Table) -> list[dict[str, Any]]:
    """The rows of all tasks' files of a table."""
    return [row for path in sorted((root / table.name).iterdir()) for row in pq.read_table(path).to_pylist()]


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


def test_rows_stand_in_order_of_cluster_and_placer(tmp_path: Path) -> None:
    results_of(fleet_task(Fleet.of(recipe(5)), run_root(tmp_path)), *range(6))
    for table in (schemas.BROKERS, schemas.TOPICS, schemas.MEASURES, schemas.FACTS):
        keys = [(row["cluster_id"], row["placer"]) for row in written(tmp_path, table)]
        assert keys == sorted(keys) != []


def test_each_cluster_done_is_a_byte_of_the_count_file(tmp_path: Path) -> None:
    results_of(fleet_task(Fleet.of(recipe(5)), run_root(tmp_path)), *range(6))
    assert sum(path.stat().st_size for path in (tmp_path / COUNT_FOLDER).iterdir()) == 6


def test_a_fault_of_a_task_is_a_row_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "place_cluster", refusing)
    (row,) = results_of(fleet_task(Fleet.of(recipe(5)), run_root(tmp_path)), 0)
    assert (row["fault"], row["file"]) == ("no such placer", None)


def refusing(*_: object, **__: object) -> None:
    raise UsageError("no such placer")


def test_the_dumps_task_tells_the_rows_of_each_input_and_what_changed(tmp_path: Path) -> None:
    paths = [tmp_path / "1.txt", tmp_path / "2.txt"]
    for path, text in zip(paths, (DESCRIBE.format(1, "1,2"), DESCRIBE.format(2, "2")), strict=True):
        path.write_text(text, encoding="utf-8")
    inputs = [(index, DumpInput(str(path), name=path.stem, series="s")) for index, path in enumerate(paths)]
    root = run_root(tmp_path / "run")
    assert {row["failure"] for row in results_of(dumps_task([inputs], root, None, 2), 0)} == {None}
    accounts = written(root, schemas.INPUTS)
    assert [(row["rows_in"], row["rows_analysed"], row["cluster_count"]) for row in accounts] == [(2, 2, 1)] * 2
    found = written(root, schemas.CHANGES)
    assert [change["change"] for change in found] == ["leader moved", "ISR shrunk"]
    assert [(change["from_cluster"], change["to_cluster"]) for change in found] == [("1", "2")] * 2
    facts = written(root, schemas.FACTS)
    assert [(row["cluster_id"], row["under_min_isr_count"]) for row in facts] == [(0, 0), (1, 1)]
    assert [row["previous_cluster_id"] for row in facts] == [None, 0]
    pair = {"placer": "dump", "broker_id": 1, "other_broker_id": 2, "shared_count": 1}
    assert written(root, schemas.PAIRS) == [{"cluster_id": 0} | pair, {"cluster_id": 1} | pair]


def test_every_partition_of_a_dump_has_a_row_with_all_that_is_wrong(tmp_path: Path) -> None:
    """More under-replicated partitions than are explained, in several batches; the counts are those of the cluster."""
    count, text = 2 * VIOLATIONS_MAX + 7, tmp_path / "d.txt"
    lines = [
        f"\tTopic: t\tPartition: {number}\tLeader: {'none' if number == 3 else 2}\tReplicas: 1,2\tIsr: 2\n"
        for number in range(count)
    ]
    head = f"Topic: t\tPartitionCount: {count}\tReplicationFactor: 2\tConfigs: min.insync.replicas=1\n"
    text.write_text(head + "".join(lines), encoding="utf-8")
    root = run_root(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_columns, "BATCH_ROWS", 10)
        assert {row["failure"] for row in results_of(dumps_task([[(0, DumpInput(str(text)))]], root, None, 2), 0)} == {
            None
        }
    rows, (facts,) = written(root, schemas.PARTITIONS), written(root, schemas.FACTS)
    assert [row["partition"] for row in rows] == list(range(count))
    assert facts["under_replicated_count"] == sum(row["under_replicated"] for row in rows) == count
    assert [row["partition"] for row in rows if row["leaderless"]] == [3]
    assert (rows[3]["leader"], rows[4]["leader"]) == (-1, 2)
    assert rows[3]["broken"] == ["leaderless", "under-min-isr", "at-min-isr", "under-replicated"]
    assert rows[4]["broken"] == ["at-min-isr", "under-replicated", "not-preferred-leader"]
    assert {tuple(row["missing_from_isr"]) for row in rows} == {(1,)}
    assert {(row["cluster"], row["topic"], row["fewer_racks"], row["size_bytes"]) for row in rows} == {
        (str(text), "t", None, None)
    }
    # Partition 3 has no leader until broker 2, its whole ISR, is back: broker 1 alone does not explain it.
    assert (facts["out_of_sync_brokers"], facts["out_of_sync_explained_count"]) == ([1], count - 1)
    held = written(root, schemas.BROKERS)
    assert [(row["broker_id"], row["missing_from_isr_count"]) for row in held] == [(1, count), (2, 0)]


@pytest.mark.parametrize("path", sorted(REAL_DUMPS), ids=lambda path: path.name)
def test_partitions_and_counts_of_a_real_dump_agree(tmp_path: Path, path: Path) -> None:
    racks = read_racks(RACKS_FILE.read_bytes(), source="racks")
    root = run_root(tmp_path / "run")
    assert {row["failure"] for row in results_of(dumps_task([[(0, DumpInput(str(path)))]], root, racks, None), 0)} == {
        None
    }
    rows, (facts,) = written(root, schemas.PARTITIONS), written(root, schemas.FACTS)
    for column in (one.name for one in schemas.PARTITIONS.columns if one.type == "boolean"):
        known = [row[column] for row in rows if row[column] is not None]
        assert facts[f"{column}_count"] == (sum(known) if known else None), column
    assert facts["violation_count"] == sum(len(row["broken"]) for row in rows)
    for row in rows:
        assert set(row["missing_from_isr"]) <= set(row["replicas"]) - set(row["isr"])
        assert len(row["racks"]) == len(row["replicas"])
