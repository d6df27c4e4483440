"""What executors hand over: counted as `placement` counts, one row a cluster, errors as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.audit import partition_states, rack_audit, topic_spread
from placement.loads import loads
from spark_analysis import schemas
from spark_analysis.describe import VIOLATIONS_MAX, count_pairs, describe_simulated, describe_view, view_of
from spark_analysis.fleet.generate import Fleet, make_cluster
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.recipe import RackPlan
from spark_analysis.kernels import DumpInput, dumps_kernel, fleet_kernel
from spark_analysis.staging import STAGE_SCHEMA, Columns, StagedRow, batches, encode
from tests.spark_analysis.test_fleet import RACKS, SEEDS, recipe

DESCRIBE = (
    "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: {}\tReplicas: 1,2\tIsr: {}\n"
)


def one(row: StagedRow) -> dict[str, Any]:
    return encode([row]).to_pylist()[0]


def numbers(*values: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"id": list(values)})]


def rows_of(kernel: Any, *values: int) -> list[dict[str, Any]]:
    return [row for batch in kernel(numbers(*values)) for row in batch.to_pylist()]


@given(SEEDS, RACKS, st.sampled_from([0.0, 0.4]), st.sampled_from(["classic", "striped"]))
def test_a_simulated_cluster_is_described_as_its_view_would_be(
    seed: int, racks: RackPlan, fenced: float, placer: str
) -> None:
    cluster = make_cluster(Fleet.of(recipe(seed, racks, fenced=fenced)), 0)
    placed = place_cluster(cluster, placer, seed=seed)
    found = one(describe_simulated(cluster, placed, placer=placer, source="test"))
    expected = one(describe_view(view_of(cluster, placed, "test")))
    assert found.pop("shape") == cluster.shape.name
    assert found.pop("placer") == placer
    del expected["shape"], expected["placer"]
    assert found == expected


def test_counts_are_those_of_placement() -> None:
    cluster = make_cluster(Fleet.of(recipe(5, fenced=0.4)), 3)
    view = view_of(cluster, place_cluster(cluster, "classic", seed=5), "test")
    row = one(describe_view(view))
    held, spread, states = loads(view), topic_spread(view), partition_states(view)
    assert cluster.fenced.any()
    assert held.brokers.leader_count is not None
    assert [broker["leader_count"] for broker in row["brokers"]] == held.brokers.leader_count.tolist()
    assert [topic["replica_moves"] for topic in row["topics"]] == spread.replica_moves.tolist()
    assert states.under_replicated is not None
    assert row["under_replicated_count"] == states.under_replicated.size > 0
    assert row["rack_count"] == rack_audit(view).rack_count == len(row["racks"])


def test_a_fenced_broker_leads_nothing() -> None:
    cluster = make_cluster(Fleet.of(recipe(5, fenced=0.4)), 3)
    row = one(describe_simulated(cluster, place_cluster(cluster, "classic", seed=5), placer="classic", source="test"))
    fenced = [broker for broker in row["brokers"] if broker["fenced"]]
    assert fenced
    assert {broker["leader_count"] for broker in fenced} == {0}
    assert sum(broker["replica_count"] for broker in fenced) >= row["under_replicated_count"] > 0


def test_violations_are_listed_up_to_a_hundred_of_each_kind_and_counted_whole() -> None:
    cluster = make_cluster(Fleet.of(recipe(5, fenced=0.9)), 0)
    row = one(describe_simulated(cluster, place_cluster(cluster, "classic", seed=5), placer="classic", source="test"))
    kinds = [violation["constraint"] for violation in row["violations"]]
    assert all(kinds.count(kind) <= VIOLATIONS_MAX for kind in kinds)
    assert row["violation_count"] >= len(kinds) > 0


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


def test_batches_keep_rows_in_order_and_within_bounds() -> None:
    rows = [
        StagedRow({"cluster_index": number}, {"brokers": Columns(30_000, (np.arange(30_000), *[None] * 5))})
        for number in range(5)
    ]
    made = list(batches(rows))
    assert [batch.num_rows for batch in made] == [3, 2]
    assert [row for batch in made for row in batch.column("cluster_index").to_pylist()] == [0, 1, 2, 3, 4]
    assert all(batch.schema == STAGE_SCHEMA for batch in made)


def test_a_nested_column_mixes_known_and_unknown_clusters() -> None:
    known = StagedRow({}, {"racks": Columns(1, (["a"], np.array([2]), np.array([5]), np.array([1]), np.array([9])))})
    unknown = StagedRow({}, {"racks": Columns(2, (["a", None], np.array([1, 1]), None, None, None))})
    racks = encode([unknown, StagedRow({}, {}), known]).column("racks").to_pylist()
    assert [len(rows) for rows in racks] == [2, 0, 1]
    assert [row["size_bytes"] for rows in racks for row in rows] == [None, None, 9]
    assert racks[0][1]["rack"] is None


def test_the_fleet_kernel_answers_for_the_numbers_it_is_given() -> None:
    kernel = fleet_kernel(Fleet.of(recipe(2)))
    together, alone = rows_of(kernel, 0, 1, 2), rows_of(kernel, 1)
    assert [(row["cluster_index"], row["placer"]) for row in together] == [
        (number, placer) for number in range(3) for placer in ("classic", "striped")
    ]
    assert together[2:4] == alone


def test_the_dumps_kernel_tells_the_rows_of_each_input_and_what_changed(tmp_path: Path) -> None:
    paths = [tmp_path / "1.txt", tmp_path / "2.txt"]
    for path, text in zip(paths, (DESCRIBE.format(1, "1,2"), DESCRIBE.format(2, "2")), strict=True):
        path.write_text(text, encoding="utf-8")
    inputs = [(index, DumpInput(str(path), name=path.stem, series="s")) for index, path in enumerate(paths)]
    first, second = rows_of(dumps_kernel([inputs], None, 2), 0)
    (account,) = second["inputs"]
    assert (account["rows_in"], account["rows_analysed"], account["cluster_count"]) == (2, 2, 1)
    assert tuple(account) == schemas.INPUTS.column_names
    assert first["changes"] == []
    assert [change["change"] for change in second["changes"]] == ["leader moved", "ISR shrunk"]
    assert [(change["from_cluster"], change["to_cluster"]) for change in second["changes"]] == [("1", "2")] * 2
    assert (first["under_min_isr_count"], second["under_min_isr_count"]) == (0, 1)
    assert second["pairs"] == [{"broker_id": 1, "other_broker_id": 2, "shared_count": 1}]


def test_inputs_of_no_series_are_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "1.txt"
    path.write_text(DESCRIBE.format(1, "1,2"), encoding="utf-8")
    inputs = [[(0, DumpInput(str(path)))], [(1, DumpInput(str(path)))]]
    assert [row["changes"] for row in rows_of(dumps_kernel(inputs, None, None), 0, 1)] == [[], []]


@pytest.mark.parametrize("text", ["", "no dump\n"])
def test_an_input_that_cannot_be_used_is_a_row_that_says_why(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text, encoding="utf-8")
    (row,) = rows_of(dumps_kernel([[(4, DumpInput(str(path)))]], None, None), 0)
    assert row["input_index"] == 4
    assert row["failure"]["source"] == str(path)
    assert row["failure"]["what"]
    assert row["inputs"] == []
