"""Rows of dumps: every row is accounted for, and a fault is a row, no row, or an error, as the mode says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker.errors import InputError
from spark_analysis.data_sources.dump_rows import DumpRequest, table_batches
from spark_analysis.data_sources.options import DROP, FAILFAST, PERMISSIVE
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables.schemas import CLUSTER_TABLES
from tests.spark_analysis.data_sources.dumps import MULTIREGION, describe, write


def rows(
    dumps: list[DumpInput], table: str = "partitions", mode: str = PERMISSIVE, **more: Any
) -> list[dict[str, Any]]:
    chosen = next(each for each in CLUSTER_TABLES if each.name == table)
    request = DumpRequest(chosen, chosen.column_names, mode, **more)
    batches = list(table_batches(request, dumps))
    schema = pa.schema([(field.name, field.type) for field in chosen.arrow_schema()])
    return pa.Table.from_batches(batches, schema).to_pylist()


@pytest.fixture
def mixed(tmp_path: Path) -> list[DumpInput]:
    """Return one good dump, one with a damaged line, one cut off in its compressed data, and one that is gone."""
    write(tmp_path / "good.txt", describe(3))
    write(tmp_path / "line.txt", describe(3).replace("Leader: 2", "Leader: two"))
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(describe(3).encode())[:-12])
    names = ("good.txt", "line.txt", "cut.txt.gz", "gone.txt")
    return [DumpInput(str(tmp_path / name), name.partition(".")[0]) for name in names]


def test_partitions_say_what_the_dump_says(tmp_path: Path) -> None:
    path = str(write(tmp_path / "prod.txt", describe(2)))
    first, second = rows([DumpInput(path, "prod")])
    assert (
        first | {"leader": -1, "racks": ["", "", ""], "replicas": [1, 2, 3], "isr": [1, 2, 3], "min_insync_replicas": 2}
        == first
    )
    assert second["leader"] == 2
    assert (first["cluster"], first["topic"], first["partition"], first["source"]) == ("prod", "orders", 0, path)
    silent = {name for name, value in first.items() if value is None}
    assert silent == {
        "elr",
        "last_known_elr",
        "observers",
        "adding",
        "removing",
        "size_bytes",
        "replica_size_bytes",
        "fault",
        "offline",
    }


def test_a_fault_is_a_row_that_says_what_is_wrong_and_where(mixed: list[DumpInput]) -> None:
    found = rows(mixed)
    (missing,) = (row for row in found if row["fault"] is not None and row["cluster"] is not None)
    assert missing["cluster"] == "line"
    assert missing["fault"].startswith("1 of 4 rows could not be read (line 3: Leader is the text 'two'")
    faults = [row for row in found if row["fault"] is not None and row["cluster"] is None]
    assert len(found) - len(faults) == 3 + 2 + 1
    assert [
        row["fault"].partition(mixed[0].path.removesuffix("good.txt"))[2].split(" (found")[0] for row in faults
    ] == [
        "line.txt:3: Leader is the text 'two'; allowed are whole numbers from 0 to 2147483647",
        "cut.txt.gz: the compressed data is damaged: compressed file ended before the end-of-stream marker was reached",
        "gone.txt: cannot be read: no such file or directory",
    ]
    assert all(value is None for row in faults for name, value in row.items() if name not in ("source", "fault"))


def test_faults_are_left_out_or_end_the_job_as_the_mode_says(mixed: list[DumpInput]) -> None:
    assert {row["cluster"] for row in rows(mixed, mode=DROP)} == {"good", "line"}
    assert len(rows(mixed, mode=DROP)) == 5
    for place, text in (
        (1, "Leader is the text 'two'"),
        (2, "the compressed data is damaged"),
        (3, "cannot be read"),
    ):
        with pytest.raises(InputError, match=text):
            rows(mixed[place:], mode=FAILFAST)


def test_a_cluster_that_is_cut_off_is_a_fault_that_ends_the_job_as_the_mode_says() -> None:
    cut = [DumpInput(str(MULTIREGION.parent / "reported" / "a-cut-off.txt"), "cut")]
    sentence = "payments declares 8 partitions, 3 are listed"
    assert [row["fault"] for row in rows(cut)] == [None] * 3 + [sentence]
    assert [row["fault"] for row in rows(cut, mode=DROP)] == [None] * 3
    assert [row["partitions_complete"] for row in rows(cut, "clusters")] == [False]
    with pytest.raises(InputError, match=sentence):
        rows(cut, mode=FAILFAST)


def test_racks_reach_every_broker_and_a_mistake_in_them_is_an_error_in_every_mode(tmp_path: Path) -> None:
    dump = DumpInput(str(MULTIREGION / "1-baseline.txt"), "prod")
    racks = str(MULTIREGION.parent / "multiregion-racks.csv")
    assert {tuple(row["racks"]) for row in rows([dump], racks=racks)} == {
        ("west", "west"),
        ("west", "west", "east", "east"),
    }
    assert [row["rack"] for row in rows([dump], "brokers", racks=racks)] == ["west", "west", "east", "east"]
    wrong = str(write(tmp_path / "racks.csv", "1,west\n1,east\n"))
    with pytest.raises(InputError, match="broker 1 already stands in rack 'west'"):
        rows([dump], racks=wrong)


def test_min_isr_holds_for_topics_that_do_not_show_theirs(tmp_path: Path) -> None:
    text = describe(1).replace("min.insync.replicas=2", "")
    dump = DumpInput(str(write(tmp_path / "a.txt", text)), "a")
    assert [row["min_insync_replicas"] for row in rows([dump])] == [None]
    assert [row["min_insync_replicas"] for row in rows([dump], min_insync_replicas=3)] == [3]


def test_a_topic_that_does_not_show_its_min_isr_is_null_beside_one_that_does(tmp_path: Path) -> None:
    silent = describe(1, topic="audit").replace("min.insync.replicas=2", "")
    dump = DumpInput(str(write(tmp_path / "a.txt", describe(1) + silent)), "a")
    assert {row["topic"]: row["min_insync_replicas"] for row in rows([dump])} == {"orders": 2, "audit": None}


def test_a_file_of_sizes_is_accounted_for_like_a_dump(tmp_path: Path) -> None:
    """One of its three rows has a size that is none."""
    topics = {"orders": {"0": {"Size": 7}, "1": {"Size": 8}, "9": {"Size": -9}}}
    sizes = str(write(tmp_path / "sizes.json", json.dumps(topics)))
    dump = DumpInput(str(write(tmp_path / "prod.txt", describe(2))), "prod", sizes=sizes)
    inputs, rejects = rows([dump], "inputs"), rows([dump], "rejects")
    assert [(row["source"], row["rows_in"], row["rows_analysed"]) for row in inputs] == [
        (dump.path, 3, 3),
        (sizes, 3, inputs[1]["rows_analysed"]),
    ]
    assert inputs[1]["rows_analysed"] + inputs[1]["rows_rejected"] == 3
    assert len(rejects) == inputs[1]["rows_rejected"] > 0
    assert {row["source"] for row in rejects} == {sizes}
    found = rows([dump])
    assert [row["size_bytes"] for row in found if row["fault"] is None] == [21, 24]
    assert len([row for row in found if row["fault"] is not None]) == len(rejects)
    with pytest.raises(InputError, match=r"sizes\.json"):
        rows([dump], mode=FAILFAST)
