"""Metadata logs as rows: the state at moments is the report's, the history is that of log history."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from broker.errors import BrokersideError
from broker.ids import Offset
from log.metadata import Moment
from spark_analysis.cli.commands import brokerside
from spark_analysis.data_sources.dump_rows import DumpRequest, table_batches
from spark_analysis.data_sources.metadata_rows import MetadataRequest, metadata_batches
from spark_analysis.data_sources.options import FAILFAST, PERMISSIVE
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables.schemas import CLUSTER_PARTITIONS, METADATA_TABLES
from tests.spark_analysis.data_sources.dumps import KRAFT

LOG = KRAFT / "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"


def rows(*paths: Path, table: str = "partitions", mode: str = PERMISSIVE, **more: Any) -> list[dict[str, Any]]:
    chosen = next(each for each in METADATA_TABLES if each.name == table)
    request = MetadataRequest(chosen, chosen.column_names, mode, **more)
    batches = list(metadata_batches(request, [DumpInput(str(path), name=path.name) for path in paths]))
    schema = pa.schema([(field.name, field.type) for field in chosen.arrow_schema()])
    return pa.Table.from_batches(batches, schema).to_pylist()


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a log with one batch of records that cannot be read."""
    folder = tmp_path / "damaged"
    folder.mkdir()
    data = bytearray((LOG / SEGMENT).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (folder / SEGMENT).write_bytes(data)
    return folder


def test_the_end_is_what_kafka_cluster_reads(tmp_path: Path) -> None:
    request = DumpRequest(CLUSTER_PARTITIONS, CLUSTER_PARTITIONS.column_names, PERMISSIVE)
    (plain,) = (batch.to_pylist() for batch in table_batches(request, [DumpInput(str(LOG), name=LOG.name)]))
    found = rows(LOG)
    assert {(row.pop("offset"), row.pop("moment")) for row in found} == {(234, "4 brokers live")}
    assert {row.pop("time_ms") for row in found} == {1795285849039}
    assert found == plain


def test_moments_are_shown_once_each_with_what_changed() -> None:
    at = tuple(Moment(offset=Offset(offset)) for offset in (168, 168, 234, 10**9))
    found = rows(LOG, at=at, table="brokers")
    assert list(dict.fromkeys((row["offset"], row["moment"]) for row in found)) == [
        (168, "2 brokers live, brokers 1 and 4 fenced"),
        (234, "brokers 1 and 4 back"),
    ]
    assert [row["broker_id"] for row in found if row["fenced"]] == [1, 4]
    assert len(rows(LOG, by_brokers=True, table="clusters")) == 7  # As in the report of the README.


@pytest.mark.parametrize("log", [LOG, KRAFT.parent / "kraft-4.3" / "__cluster_metadata-0"], ids=["4.0", "4.3"])
def test_events_are_those_that_log_history_prints(log: Path) -> None:
    printed = CliRunner().invoke(brokerside, ["log", "history", str(log), "--json"], catch_exceptions=False)
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    events = [line for line in lines if line.pop("type") == "event"]
    found = rows(log, table="events")
    for row in found:
        assert (row.pop("cluster"), row.pop("source"), row.pop("fault")) == (log.name, str(log), None)
        row.pop("time_ms")
    times = [event.pop("time") for event in events]
    assert len(times) == len(found) > 50
    assert [{name: value for name, value in row.items() if value is not None} for row in found] == [
        {name: value for name, value in event.items() if name != "time_ms"} for event in events
    ]


def test_records_that_cannot_be_read_are_faults_and_rows_in_add_up(damaged: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.log"
    nothing.write_bytes(b"no log at all")
    for table in ("partitions", "events"):
        found = [row for row in rows(damaged, nothing, table=table) if row["fault"] is not None]
        assert {row["source"] for row in found} == {str(damaged), str(nothing)}
        assert found[-1]["fault"] == f"{nothing}: is no segment and no snapshot of a metadata log"
        with pytest.raises(BrokersideError):
            rows(damaged, table=table, mode=FAILFAST)
    inputs, rejects = rows(LOG, damaged, nothing, table="inputs"), rows(LOG, damaged, nothing, table="rejects")
    assert all(row["rows_in"] == row["rows_analysed"] + row["rows_rejected"] for row in inputs)
    assert [row["rows_rejected"] > 0 for row in inputs] == [False, True, True]
    assert [row["cluster_count"] for row in inputs] == [1, 1, 0]
    assert len(rejects) == sum(row["rows_rejected"] for row in inputs)


def test_a_moment_before_the_beginning_of_one_log_is_its_fault_alone(tmp_path: Path) -> None:
    late = tmp_path / "late"
    late.mkdir()
    for name in ("00000000000000000208-0000000001.checkpoint",):
        shutil.copy(LOG / name, late / name)
    found = rows(late, LOG, at=(Moment(offset=Offset(100)),), table="clusters")
    assert [(row["cluster"], row["fault"] is None) for row in found] == [(None, False), (LOG.name, True)]
    assert found[0]["fault"].startswith("offset 100 lies before the beginning of the log")
