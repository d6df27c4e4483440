"""Rows in are rows analysed and rows rejected: in every data source, whatever its options, and whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import pytest

from spark_analysis.data_sources.options import DROP, PERMISSIVE
from spark_analysis.data_sources.registry import SOURCES
from tests.log.samples import DIRECTORY, write_sample
from tests.placement.formats.test_group_tables import printed, rows_of
from tests.spark_analysis.bad_inputs import UNUSABLE
from tests.spark_analysis.data_sources.dumps import KRAFT, describe, write
from tests.spark_analysis.data_sources.logs import tier

Rows: TypeAlias = list[dict[str, Any]]
Read: TypeAlias = Callable[..., Rows]
BAD_ROWS: Final[dict[str, Callable[[str], str]]] = {
    "a bad number": lambda line: line.replace("Leader: 2", "Leader: two"),
    "a column that is missing": lambda line: line.partition("\tReplicas")[0],
    "a partition listed twice": lambda line: f"{line}\n{line}",
    "a number too large": lambda line: line.replace("Partition: 1", f"Partition: {2**31}"),
    "bytes that are no text": lambda line: line.replace("Isr: ", "Isr: \udcff"),
    "a broker listed twice": lambda line: line.replace("Replicas: 2,3,1", "Replicas: 2,2,1"),
}
"""What may be wrong with the line of a partition, one row put aside each."""


@attrs.frozen
class Folder:
    """What a data source is given: paths, the rows in them as a person counts them, and what is gone when it reads."""

    paths: Sequence[Path]
    rows_in: int
    rejected: int
    gone: Path


def with_unusable(folder: Path, suffix: str, good: bytes, kinds: Sequence[str] = tuple(UNUSABLE)) -> Path:
    """Write a file of each unusable kind, and return one to be removed between listing and reading."""
    for place, kind in enumerate(kinds):
        UNUSABLE[kind][0](folder / f"unusable-{place:02d}{suffix}")
    (folder / f"vanishes{suffix}").write_bytes(good)
    return folder / f"vanishes{suffix}"


NO_FOLDERS: Final = tuple(kind for kind in UNUSABLE if kind != "folder without a log")
"""A folder among files is passed over, not put aside."""


def dumps(tmp_path: Path) -> Folder:
    """Dumps with a bad row each, two of one name that are refused, and files that are no dumps."""
    good = describe(3)
    for place, make in enumerate(BAD_ROWS.values()):
        lines = good.splitlines()
        lines[2] = make(lines[2])
        (tmp_path / f"bad-{place}.txt").write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    for side in ("east", "west"):
        write(tmp_path / side / "prod.txt", good)
    gone = with_unusable(tmp_path, ".txt", good.encode(), NO_FOLDERS)
    unusable, listed_twice = len(NO_FOLDERS) + 1, 1
    refused = 2
    rows_in = 4 * len(BAD_ROWS) + listed_twice + unusable + refused
    rejected = len(BAD_ROWS) + unusable + refused
    return Folder([tmp_path, tmp_path / "east", tmp_path / "west"], rows_in, rejected, gone)


def logs_of_metadata(tmp_path: Path) -> Folder:
    """A metadata log, one with a batch of one record that cannot be read, and files that are no log.

    What cannot be read is put aside, and so is the gap that it leaves before the next record.
    """
    (tmp_path / "damaged").mkdir()
    segment = KRAFT / "__cluster_metadata-0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "damaged" / segment.name).write_bytes(data)
    (tmp_path / "files").mkdir()
    gone = with_unusable(tmp_path / "files", ".log", segment.read_bytes(), NO_FOLDERS)
    unusable, rejected = len(NO_FOLDERS) + 1, 2
    rows_in = 235 + 234 + rejected + unusable
    return Folder([segment.parent, tmp_path / "damaged", tmp_path / "files"], rows_in, rejected + unusable, gone)


def printed_groups(tmp_path: Path) -> Folder:
    """What kafka-consumer-groups prints, a bad row in each, and files of something else."""
    count = 0
    for form, before in (
        ("members-verbose", "orders:2,3,4,5  "),
        ("offsets", "355  "),
        ("state", "Stable               2"),
    ):
        assert before in printed(form)
        (tmp_path / f"{form}.txt").write_text(printed(form).replace(before, "x".ljust(len(before)), 1))
        count += len(rows_of(printed(form)))
    gone = with_unusable(tmp_path, ".txt", printed("offsets").encode(), NO_FOLDERS)
    unusable = len(NO_FOLDERS) + 1
    return Folder([tmp_path], count + unusable, 3 + unusable, gone)


def segments(tmp_path: Path) -> Folder:
    """Raw segments and segments in chunks, damaged in the middle, cut off, empty, looping and gone."""
    write_sample("none", tmp_path)
    tier(tmp_path / DIRECTORY, tmp_path / "remote")
    raw, chunked = (sorted(tmp_path.glob(f"{where}/**/*.log")) for where in (DIRECTORY, "remote"))
    raw[0].write_bytes(raw[0].read_bytes()[:-10])
    raw[1].write_bytes(raw[1].read_bytes() + b"\0" * 100)
    raw[2].write_bytes(b"")
    raw[3].unlink()
    raw[3].symlink_to(raw[3].name)
    chunked[0].write_bytes(chunked[0].read_bytes()[:100])
    chunked[1].with_suffix(".rsm-manifest").write_text("{}")
    size_bytes = sum(path.stat().st_size for path in (*raw[:3], *raw[5:]))
    manifests = (json.loads(path.with_suffix(".rsm-manifest").read_text()) for path in chunked[2:])
    size_bytes += sum(manifest["chunkIndex"]["originalFileSize"] for manifest in manifests)
    return Folder([tmp_path], size_bytes, 6, raw[4])


def recipe(tmp_path: Path) -> Folder:
    """Twenty clusters that do not exist."""
    return Folder([Path("uneven-racks")], 2, 0, tmp_path / "nothing")


MANY: Final = 300
NUMBER: Final = 10**12
"""A number of partitions that no cluster has: nothing is made of such a size."""


def many_dumps(tmp_path: Path) -> Folder:
    """Dumps, one of something else, and one whose header declares 10^12 partitions."""
    for place in range(MANY):
        write(tmp_path / f"c{place:03d}.txt", describe(2))
    write(tmp_path / "c007.txt", "nothing of Kafka\n")
    write(tmp_path / "c008.txt", describe(2, declared=NUMBER))
    write(tmp_path / "c009.txt", describe(2).replace("Partition: 1", f"Partition: {NUMBER}"))
    return Folder([tmp_path], 3 * (MANY - 1) + 1, 3, tmp_path / "nothing")


def many_metadata_logs(tmp_path: Path) -> Folder:
    """Metadata logs, one of noise."""
    data = (KRAFT / "__cluster_metadata-0" / "00000000000000000000.log").read_bytes()
    for place in range(MANY):
        (tmp_path / f"c{place:03d}").mkdir()
        (tmp_path / f"c{place:03d}" / "00000000000000000000.log").write_bytes(b"noise" if place == 7 else data)
    return Folder(sorted(tmp_path.iterdir()), 235 * (MANY - 1) + 1, 1, tmp_path / "nothing")


def many_groups(tmp_path: Path) -> Folder:
    """Offsets of groups, one file of something else, and one of partition 10^12."""
    text = printed("offsets")
    for place in range(MANY):
        write(tmp_path / f"c{place:03d}.txt", text)
    line = rows_of(text)[0]
    write(tmp_path / "c007.txt", "nothing of Kafka\n")
    topic, number = line.split()[1:3]
    write(tmp_path / "c008.txt", text.replace(line, line.replace(f" {number} ", f" {NUMBER} ", 1), 1))
    assert f"{topic} " in line
    return Folder([tmp_path], len(rows_of(text)) * (MANY - 1) + 1, 2, tmp_path / "nothing")


def many_segments(tmp_path: Path) -> Folder:
    """Segments, one of noise, and one of a partition whose number is no int."""
    write_sample("none", tmp_path)
    first = sorted((tmp_path / DIRECTORY).glob("*.log"))[0].read_bytes()
    for place in range(MANY):
        (tmp_path / f"orders-{NUMBER if place == 8 else place}").mkdir()
        path = tmp_path / f"orders-{NUMBER if place == 8 else place}" / f"{0:020d}.log"
        path.write_bytes(b"noise" if place == 7 else first)
    size_bytes = sum(path.stat().st_size for path in tmp_path.glob("**/*.log"))
    return Folder([tmp_path], size_bytes, 1, tmp_path / "nothing")


def account_of_rows(read: Read, entry_tables: Sequence[str]) -> tuple[int, int, int]:
    """Rows in, analysed and rejected as the table of inputs says; the rejects and the faults are as many."""
    inputs, rejects = read(table="inputs"), read(table="rejects")
    assert all(row["rows_in"] == row["rows_analysed"] + row["rows_rejected"] for row in inputs)
    unusable = [row["source"] for row in inputs if row["fault"] is not None]
    faults = {  # A row with a fault and a cluster is about partitions that are missing, no entry.
        table: [row for row in read(table=table) if row["fault"] is not None and row.get("cluster") is None]
        for table in entry_tables
    }
    entries = [row for rows in faults.values() for row in rows if row["source"] not in unusable]
    whole = [sorted(row["source"] for row in rows if row["source"] in unusable) for rows in faults.values()]
    assert whole == [sorted(unusable)] * len(entry_tables)
    assert len(rejects) == len(entries) + len(unusable)
    rows_in, analysed, rejected = (
        sum(row[f"rows_{name}"] for row in inputs) for name in ("in", "analysed", "rejected")
    )
    return rows_in, analysed, rejected


def account_of_bytes(read: Read) -> tuple[int, int, int]:
    """Bytes in, of segments that are read, and how many damages there are, in each table as many."""
    found, damage, records, batches = (read(table=name) for name in ("segments", "damage", "records", "batches"))
    assert all(row["size_bytes"] == row["read_bytes"] + row["damaged_bytes"] for row in found)
    assert sum(row["damaged_bytes"] for row in found) == sum(row["size_bytes"] or 0 for row in damage)
    good = [row for row in records if row["fault"] is None]
    assert sum(row["record_count"] for row in found) == len(good) > 0
    assert sum(row["record_count"] or 0 for row in batches) == len(good)
    assert {len(rows) - sum(row["fault"] is None for row in rows) for rows in (records, batches, damage)} == {
        len(damage)
    }
    return sum(row["size_bytes"] for row in found), sum(row["read_bytes"] for row in found), len(damage)


def account_of_fleet(read: Read) -> tuple[int, int, int]:
    """Clusters in and analysed: each is there once as each of two placers places it, in every table."""
    keys = {
        table: {(row["cluster_id"], row["placer"]) for row in read(table=table)} for table in ("clusters", "brokers")
    }
    assert keys["clusters"] == keys["brokers"] == {(row["cluster_id"], row["placer"]) for row in read()}
    assert len(read(table="clusters")) == len(keys["clusters"])
    return len(keys["clusters"]) // 2, len({number for number, _ in keys["clusters"]}), 0


@attrs.frozen
class Case:
    """How the account of a data source is made: what it is given, with which options, and what says what it read."""

    given: Callable[[Path], Folder]
    account: Callable[[Read], tuple[int, int, int]]
    options: Sequence[dict[str, str]] = ({},)


MODES: Final = ({"mode": PERMISSIVE}, {"mode": DROP})
CASES: Final = {
    "kafka_cluster": Case(
        dumps, lambda read: account_of_rows(read, ("partitions",)), ({}, {"task_bytes": "1"}, {"cluster": "{file}"})
    ),
    "kafka_metadata": Case(
        logs_of_metadata,
        lambda read: account_of_rows(read, ("partitions",)),
        ({}, {"by_brokers": "true"}, {"at": "168,234"}, {"task_bytes": "1"}),
    ),
    "kafka_groups": Case(
        printed_groups,
        lambda read: account_of_rows(read, ("members", "offsets", "states")),
        ({}, {"cluster": "{folder}"}, {"task_bytes": "1"}),
    ),
    "kafka_log": Case(
        segments,
        account_of_bytes,
        ({}, {"values": "false"}, {"read_committed": "true"}, {"topics": "topic"}, {"task_bytes": "1"}),
    ),
    "kafka_fleet": Case(recipe, account_of_fleet, ({"clusters": "2"}, {"clusters": "2", "seed": "7"})),
}
"""A case for each data source of the registry: a source without one is an error."""


def reading(source: Any, folder: Folder, given: dict[str, str]) -> Read:
    """Return what Spark does with a source: it lists on the driver and reads in tasks, when a file may be gone."""

    def read(**options: str) -> Rows:
        held = folder.gone.read_bytes() if folder.gone.exists() else None
        one = source({"paths": json.dumps([str(path) for path in folder.paths]), **given, **options})
        reader = one.reader(one.schema())
        tasks = reader.partitions()
        if held is not None:
            folder.gone.unlink()
        rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
        if held is not None:
            folder.gone.write_bytes(held)
        return rows

    return read


MANY_OF: Final[dict[str, Callable[[Path], Folder]]] = {
    "kafka_cluster": many_dumps,
    "kafka_metadata": many_metadata_logs,
    "kafka_groups": many_groups,
    "kafka_log": many_segments,
    "kafka_fleet": recipe,
}


@pytest.mark.deep
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name())
def test_one_corrupt_input_among_three_hundred_costs_no_other_a_row(source: Any, tmp_path: Path) -> None:
    name = source.name()
    folder = MANY_OF[name](tmp_path)
    rows_in, analysed, rejected = CASES[name].account(reading(source, folder, CASES[name].options[0]))
    assert (rows_in, rejected) == (folder.rows_in, folder.rejected)
    if name != "kafka_log":
        assert rows_in == analysed + rejected


@pytest.mark.parametrize(
    ("source", "options"),
    [(source, options) for source in SOURCES for options in CASES[source.name()].options],
    ids=lambda value: value.name() if hasattr(value, "name") else " ".join(value) or "plain",
)
def test_rows_in_are_rows_analysed_and_rows_rejected(source: Any, options: dict[str, str], tmp_path: Path) -> None:
    case = CASES[source.name()]
    folder = case.given(tmp_path)
    rows_in, analysed, rejected = case.account(reading(source, folder, options))
    assert (rows_in, rejected) == (folder.rows_in, folder.rejected)
    if source.name() != "kafka_log":  # Of bytes, the damaged ones are not as many as the damages.
        assert rows_in == analysed + rejected
