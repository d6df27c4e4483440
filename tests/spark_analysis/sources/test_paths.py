"""Whatever a path is called, and however it is given, every door finds the same inputs and names the same clusters."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from broker.errors import BrokersideError, InputError
from broker.wording import encodable
from spark_analysis.data_sources.dump_rows import DumpRequest, dump_batches
from spark_analysis.data_sources.options import PERMISSIVE, GivenOptions
from spark_analysis.data_sources.registry import SOURCES
from spark_analysis.parse import Parsing, _batches
from spark_analysis.sources.dumps import read_named
from spark_analysis.sources.inputs import dump_inputs
from spark_analysis.tables.schemas import CLUSTER_PARTITIONS
from tests.log.samples import write_sample
from tests.placement.formats.test_group_tables import printed
from tests.spark_analysis.data_sources.dumps import KRAFT, describe, write

LOG: Final = "__cluster_metadata-0"
BY_NAME: Final = {source.name(): source for source in SOURCES}
REQUEST: Final = DumpRequest(CLUSTER_PARTITIONS, ("cluster", "source", "fault"), PERMISSIVE)


def read(source: str, *paths: str, before: Callable[[], None] | None = None, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of a data source as its tasks read them; `before` is called between listing and reading."""
    one = BY_NAME[source]({"paths": json.dumps(paths), **options})
    reader = one.reader(one.schema())
    tasks = reader.partitions()
    if before is not None:
        before()
    return [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]


def of_report(*paths: str) -> list[dict[str, Any]]:
    dumps = dump_inputs(paths, None, None)
    return [
        row for dump in dumps for batch in dump_batches(REQUEST, dump, None, read_named) for row in batch.to_pylist()
    ]


def of_parse(path: str) -> list[dict[str, Any]]:
    content = Path(path.removeprefix("file:")).read_bytes()
    files = pa.RecordBatch.from_pydict({"path": [encodable(path)], "content": [content]})
    return [row for batch in _batches([REQUEST], Parsing(), None, [files]) for row in batch.to_pylist()]


NAMES: Final = (
    "a#b",
    "a?b",
    "50%20",
    "a,b",
    "two words",
    "{x}",
    "[x]",
    "a=b",
    "x*y",
    "caf\udce9",
    "\u00e9t\u00e9",
    "12:30",
)
DOORS: Final = ("report", "kafka_cluster", "kafka_metadata", "kafka_groups", "kafka_log", "parse")


def place(door: str, folder: Path, name: str) -> Path:
    """Write what a door reads under a name, and return its path."""
    if door == "kafka_metadata":
        (folder / name).mkdir()
        shutil.copytree(KRAFT / LOG, folder / name / LOG)
        return folder / name
    if door == "kafka_log":
        (folder / name).mkdir()
        write_sample("none", folder / name)
        return folder / name
    return write(folder / f"{name}.txt", printed("offsets") if door == "kafka_groups" else describe(2))


@pytest.mark.parametrize("way", ["path", "uri", "pattern"])
@pytest.mark.parametrize("name", NAMES, ids=encodable)
@pytest.mark.parametrize("door", DOORS)
def test_a_name_of_any_characters_is_read_at_every_door(door: str, name: str, way: str, tmp_path: Path) -> None:
    path = str(place(door, tmp_path, name))
    given = {"path": path, "uri": f"file:{path}", "pattern": str(tmp_path / "*")}[way]
    if door == "parse":
        rows = of_parse(path if way == "pattern" else given)
    elif door == "report":
        rows = of_report(given)
    else:
        rows = read(door, given, **({"table": "offsets"} if door == "kafka_groups" else {}))
    assert rows
    assert all(row["fault"] is None for row in rows)
    assert all(encodable(name) in row["source"] for row in rows)
    if door != "kafka_log":
        assert {row["cluster"] for row in rows} == {encodable(name)}


def listed(*paths: object, **options: Any) -> dict[str, str]:
    """Return the clusters and the paths that a report finds, as kafka_cluster finds them with recursiveFileLookup."""
    given = [str(path) for path in paths]
    found = [(dump.name, dump.path) for dump in dump_inputs(given, None, False)]
    rows = read("kafka_cluster", *given, table="inputs", recursiveFileLookup="true", **options)
    assert sorted(path for _, path in found) == sorted(row["source"] for row in rows)
    names = {row["cluster"] for row in read("kafka_cluster", *given, recursiveFileLookup="true") if row["cluster"]}
    assert names <= {name for name, _ in found}
    return {str(name): path for name, path in found}


def test_a_cluster_is_called_by_its_path_below_what_is_loaded_whatever_else_lies_there(tmp_path: Path) -> None:
    for night in ("2026-11-27", "2026-11-28"):
        for name in ("prod.txt", "eu/prod.txt.gz", "eu/stage.json"):
            write(tmp_path / night / name, describe(1))
        assert set(listed(tmp_path / night)) == {"prod", "eu/prod", "eu/stage"}
        assert set(listed(tmp_path / night / "prod.txt")) == {"prod"}
        assert set(listed(tmp_path / night / "{eu,us}" / "*.{gz,json}")) == {"eu/prod", "eu/stage"}
    assert set(listed(tmp_path / "*" / "prod.txt")) == {"2026-11-27/prod", "2026-11-28/prod"}
    assert set(listed(tmp_path / "**" / "stage.json")) == {"2026-11-27/eu/stage", "2026-11-28/eu/stage"}
    write(tmp_path / "2026-11-28" / "us" / "prod.txt", describe(1))
    assert set(listed(tmp_path / "2026-11-28")) == {"prod", "eu/prod", "us/prod", "eu/stage"}


def test_a_metadata_log_does_not_swallow_the_dumps_beside_it(tmp_path: Path) -> None:
    shutil.copytree(KRAFT / LOG, tmp_path / "nightly" / LOG)
    for name in ("nightly/prod.txt", "nightly/eu/stage.txt", "nightly/meta.properties"):
        write(tmp_path / name, describe(1))
    found = listed(tmp_path / "nightly")
    assert set(found) == {"nightly", "prod", "eu/stage"}
    assert found["nightly"] == str(tmp_path / "nightly")
    alone = read("kafka_cluster", str(tmp_path / "nightly"))
    assert {row["cluster"] for row in alone if row["fault"] is None} == {"nightly", "prod"}
    controllers = tmp_path / "controllers"
    for name in ("c1", "c2"):
        shutil.copytree(KRAFT / LOG, controllers / name / LOG)
    assert set(listed(controllers)) == {"c1", "c2"}
    assert set(listed(controllers / "*" / LOG)) == {"c1", "c2"}


def test_a_loop_of_links_yields_each_file_once_and_a_link_out_of_the_folder_is_followed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    for path in (top / "a.txt", top / "day" / "b.txt", tmp_path / "elsewhere" / "c.txt"):
        write(path, describe(1))
    for link, target in (
        ("day/up", top), ("day/above", tmp_path), ("day/self", top / "day"), ("again", top / "day"),
        ("out", tmp_path / "elsewhere"),
    ):  # fmt: skip
        (top / link).symlink_to(target, target_is_directory=True)
    assert set(listed(top)) == {"a", "day/b", "out/c"}
    assert len(listed(top / "**" / "*.txt")) == 3
    assert set(listed(top, top / "day", top / "again" / "b.txt")) == {"a", "day/b", "out/c"}


def test_only_names_that_the_option_wants_are_read(tmp_path: Path) -> None:
    for name in ("c1.txt", "c2.txt", "c3.json", "day/c1.txt", "_SUCCESS", ".c4.txt"):
        write(tmp_path / name, describe(1))
    for pattern, names in (("*.txt", {"c1", "c2"}), ("c{1,3}.*", {"c1", "c3"}), ("c[!1].*", {"c2", "c3"})):
        found = read("kafka_cluster", str(tmp_path), pathGlobFilter=pattern)
        assert {row["cluster"] for row in found} == names
    with pytest.raises(InputError) as caught:
        read("kafka_cluster", str(tmp_path), pathGlobFilter="*.csv")
    expected = "holds no file that is read; folders in it are read with recursiveFileLookup"
    assert str(caught.value) == f"{tmp_path}: {expected}"


@pytest.mark.parametrize("source", ["kafka_cluster", "kafka_metadata", "kafka_groups", "kafka_log"])
def test_a_file_that_vanishes_is_a_fault_or_nothing_as_the_option_says(source: str, tmp_path: Path) -> None:
    if source == "kafka_log":
        write_sample("none", tmp_path)
    else:
        write(tmp_path / "a.txt", describe(1))
        write(tmp_path / "b.txt", describe(1))
    gone = sorted(path for path in tmp_path.rglob("*.log" if source == "kafka_log" else "*.txt"))[0]
    content = gone.read_bytes()
    for ignored, count in (("false", 1), ("true", 0)):
        rows = read(source, str(tmp_path), before=gone.unlink, ignoreMissingFiles=ignored)
        faults = [row for row in rows if row["source"] == str(gone)]
        assert [row["fault"] for row in faults] == [f"{gone}: cannot be read: no such file or directory"] * count
        gone.write_bytes(content)


@pytest.mark.parametrize("door", ["report", "kafka_cluster", "kafka_metadata", "kafka_groups", "kafka_log"])
@pytest.mark.parametrize(
    ("path", "told"),
    [
        (
            "empty",
            {
                "report": "holds no segment and no snapshot of a metadata log",
                "kafka_log": "neither is this a segment of a log nor is there one below it",
                "": "holds no file that is read; folders in it are read with recursiveFileLookup",
            },
        ),
        ("nothing-here.txt", {"": "cannot be read: no such file or directory"}),
        ("*.none", {"": "no file matches the pattern"}),
        (
            "pipe",
            {
                "kafka_log": "neither is this a segment of a log nor is there one below it",
                "kafka_metadata": "cannot be read: is not a regular file",
                "": "not a regular file; executors read files, so save its content to one first",
            },
        ),
        ("hdfs:/x", {"": "hdfs is no file system that Python opens; dumps there are read by parse.partitions("}),
        (
            "s3a://dumps/*.txt",
            {"": "s3a is no file system that Python opens; dumps there are read by parse.partitions("},
        ),
    ],
)
def test_a_path_that_stands_for_nothing_is_one_sentence_at_every_door(
    path: str, told: dict[str, str], door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BrokersideError) as caught:
        of_report_or_raise(path) if door == "report" else read(door, path, mode="FAILFAST")
    said = str(caught.value)
    shown = path if door == "report" or ":/" in path else str(tmp_path / path)
    assert said.startswith(f"{shown}: ")
    assert said.removeprefix(f"{shown}: ").startswith(told.get(door, told.get(""))), said


def of_report_or_raise(path: str) -> None:
    for dump in dump_inputs((path,), None, None):
        read_named(dump)


def test_two_inputs_of_one_name_are_faults_and_an_error_with_failfast(tmp_path: Path) -> None:
    east, west = (str(write(tmp_path / side / "prod.txt", describe(1))) for side in ("east", "west"))
    told = (
        "its cluster is 'prod', as that of another input is; name them apart, by NAME=FILE or the option cluster, or "
        "name their common folder"
    )
    for options in ({}, {"cluster": "{file}"}):
        rows = read("kafka_cluster", east, west, **options)
        assert [row["cluster"] for row in rows] == [None, None]
        assert [row["source"] for row in rows] == [east, west]
        assert all(row["fault"].startswith(f"{row['source']}: {told[:60]}") for row in rows)
        account = read("kafka_cluster", east, west, table="inputs", **options)
        assert [(row["rows_in"], row["rows_analysed"], row["rows_rejected"]) for row in account] == [(1, 0, 1)] * 2
        with pytest.raises(InputError) as caught:
            read("kafka_cluster", east, west, mode="FAILFAST", **options)
        assert str(caught.value) == f"{east}: {told}: {west}"
    assert read("kafka_cluster", east, west, mode="DROPMALFORMED") == []
    assert set(listed(tmp_path)) == {"east/prod", "west/prod"}
    apart = read("kafka_cluster", east, west, cluster="{folder}-{file}")
    assert {row["cluster"] for row in apart} == {"east-prod", "west-prod"}


def test_clusters_that_are_not_asked_for_are_not_opened(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"c{number:03d}.txt", "no dump" if number > 1 else describe(1))
    rows = read("kafka_cluster", str(tmp_path), clusters="c000,c001")
    assert [(row["cluster"], row["fault"]) for row in rows] == [("c000", None), ("c001", None)]
    from pyspark.sql.datasource import EqualTo, In

    one = BY_NAME["kafka_cluster"]({"path": str(tmp_path), "pushdown": "true"})
    reader: Any = one.reader(one.schema())
    filters = [EqualTo(("cluster",), "c001"), In(("cluster",), ("c000", "c001", "c009"))]
    assert list(reader.pushFilters(filters)) == filters
    rows = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    assert [row["cluster"] for row in rows] == ["c001"]
    assert not hasattr(type(BY_NAME["kafka_cluster"]({"path": "x"})), "pushFilters")


def test_racks_of_other_clusters_alone_are_a_fault_of_the_cluster(tmp_path: Path) -> None:
    dump, racks = write(tmp_path / "prod.txt", describe(1)), write(tmp_path / "racks.csv", "stage,1,a\nstage,2,b\n")
    rows = read("kafka_cluster", str(dump), racks=str(racks))
    told = (
        "the racks file gives none to cluster 'prod'; its clusters are 'stage', and NAME=DUMP gives a dump such a name"
    )
    assert [(row["cluster"], row["fault"]) for row in rows] == [("prod", None), ("prod", told)]
    with pytest.raises(InputError) as caught:
        read("kafka_cluster", str(dump), racks=str(racks), mode="FAILFAST")
    assert str(caught.value) == f"{dump}: {told}"


def test_options_name_what_is_allowed() -> None:
    for source in ("kafka_cluster", "kafka_metadata", "kafka_groups"):
        assert {"recursiveFileLookup", "pathGlobFilter", "ignoreMissingFiles"} <= set(BY_NAME[source].OPTIONS)
    assert GivenOptions.of("kafka_log", {"path": "file:/a#b"}, ()).paths() == ("/a#b",)


def test_a_count_of_partitions_beyond_reason_is_a_fault_of_one_row_and_of_its_cluster_among_300(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"c{number:03d}.txt", describe(1, declared=10**12 if number == 150 else None))
    rows = read("kafka_cluster", str(tmp_path))
    entry, of_cluster = [row for row in rows if row["fault"] is not None]
    assert (entry["cluster"], of_cluster["cluster"]) == (None, "c150")
    assert all(str(10**12) in row["fault"] and row["source"].endswith("c150.txt") for row in (entry, of_cluster))
    account = read("kafka_cluster", str(tmp_path), table="inputs")
    assert sum(row["rows_in"] for row in account) == sum(row["rows_analysed"] + row["rows_rejected"] for row in account)
    good = {row["cluster"] for row in rows if row["fault"] is None}
    assert len(good | {"c150"}) == 300
