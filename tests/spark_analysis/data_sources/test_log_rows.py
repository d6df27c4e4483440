"""Records of segments as columns, against reading them record by record; damage, filters, transactions, layouts."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from broker.errors import InputError
from broker.ids import ProducerEpoch, ProducerId
from log.batches.build import BatchSpec
from log.partition.partition_log import PartitionLog
from log.storage import FileStorage
from spark_analysis.data_sources import log_rows
from spark_analysis.data_sources.log_filter import LogFilter
from spark_analysis.data_sources.options import DROP, FAILFAST
from tests.log.samples import CONFIG, DIRECTORY, SAMPLES, START_MS, append, write_sample
from tests.spark_analysis.data_sources.logs import batches_of, committed, expected, rows, tier


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Return the folder of a log of several segments, not compressed."""
    write_sample("none", tmp_path)
    assert len(list((tmp_path / DIRECTORY).glob("*.log"))) > 3
    return tmp_path / DIRECTORY


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_rows_are_the_records_that_the_plain_reader_finds(tmp_path: Path, sample: str) -> None:
    write_sample(sample, tmp_path)
    found = rows(tmp_path)
    sizes = [row.pop("size_bytes") for row in found]
    assert {(row.pop("topic"), row.pop("partition"), row.pop("fault")) for row in found} == {("topic", 0, None)}
    assert found == expected(tmp_path / DIRECTORY)
    assert all(size > len(row["key"] or b"") + len(row["value"] or b"") for size, row in zip(sizes, found, strict=True))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("window_bytes", [1, 2500, 1 << 25])
def test_a_tiered_segment_in_chunks_holds_the_same_records(
    plain: Path, tmp_path: Path, compressed: bool, window_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_rows, "WINDOW_BYTES", window_bytes)
    tier(plain, tmp_path / "remote", compressed=compressed, chunk_bytes=401)
    found, local = rows(tmp_path / "remote"), rows(plain)
    assert [row.pop("source") for row in found] != [row.pop("source") for row in local]
    assert found == local


def test_a_chunk_of_another_size_than_its_manifest_says_is_a_fault(plain: Path, tmp_path: Path) -> None:
    out = tier(plain, tmp_path / "remote", compressed=False, chunk_bytes=401)
    path = sorted(out.glob("*.rsm-manifest"))[0]
    path.write_text(path.read_text().replace('"transformedChunkSize": 401', '"transformedChunkSize": 400'))
    with pytest.raises(InputError, match="the chunk at byte 0 has 400 bytes; its manifest says 401"):
        rows(out, mode=FAILFAST)


def test_raw_tiered_segments_are_found_by_the_names_of_their_folders(plain: Path, tmp_path: Path) -> None:
    first = next(iter(sorted(plain.glob("*.log")))).read_bytes()
    identifier = "oAtiIQ95REujbuzNd_lkLQ"
    for folder in (f"a-b-7-{identifier}", "orders-3", f"{identifier}-4", "elsewhere"):
        (tmp_path / "remote" / folder).mkdir(parents=True)
        (tmp_path / "remote" / folder / f"{0:020d}-{identifier}.log").write_bytes(first)
    found = {(row["topic"], row["partition"]) for row in rows(tmp_path / "remote")}
    assert found == {("a-b", 7), ("orders", 3), (identifier, 4), (None, None)}


def test_folders_that_a_broker_gives_up_are_passed_over(plain: Path, tmp_path: Path) -> None:
    data = next(iter(sorted(plain.glob("*.log")))).read_bytes()
    for role in ("delete", "future", "stray"):
        folder = tmp_path / f"topic-1.{'0' * 32}-{role}"
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(data)
    assert {row["partition"] for row in rows(tmp_path)} == {0}


def test_a_segment_cut_in_the_middle_gives_what_is_before_and_a_row_that_says_where(plain: Path) -> None:
    whole, path = rows(plain), sorted(plain.glob("*.log"))[1]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 10])
    found = rows(plain)
    (fault,) = (row for row in found if row["fault"] is not None)
    last = [batch for each, batch in batches_of(plain) if each == path][-1]
    end = last.position + last.size_bytes
    assert fault["fault"] == f"{path} at byte {end}: an incomplete batch stands at the end"
    assert {name for name, value in fault.items() if value is not None} == {"topic", "partition", "source", "fault"}
    lost = [row for row in whole if row["source"] == str(path) and row["batch_position"] >= end]
    assert [row for row in found if row["fault"] is None] == [row for row in whole if row not in lost]
    assert lost
    assert rows(plain, mode=DROP) == [row for row in found if row["fault"] is None]
    with pytest.raises(InputError, match="an incomplete batch stands at the end"):
        rows(plain, mode=FAILFAST)
    (damage,) = rows(plain, table="damage")
    assert (damage["position"], damage["is_torn_tail"], damage["size_bytes"]) == (end, True, len(data) - 10 - end)


@pytest.mark.parametrize(
    "wanted",
    [
        {"start_offset": 50},
        {"end_offset": 50},
        {"start_offset": 31, "end_offset": 32},
        {"start_ms": START_MS + 100, "end_ms": START_MS + 200},
        {"start_offset": 70, "end_ms": START_MS + 200},
        {"topics": frozenset({"other"})},
        {"partitions": frozenset({0}), "start_offset": 170},
        {"start_offset": 10**6},
    ],
)
@pytest.mark.parametrize("sample", ["none", "zstd", "compacted"])
def test_a_filter_finds_what_reading_everything_finds(tmp_path: Path, sample: str, wanted: dict[str, Any]) -> None:
    write_sample(sample, tmp_path)
    filter_ = LogFilter(**wanted)
    assert rows(tmp_path, wanted=filter_) == [
        row
        for row in rows(tmp_path)
        if filter_.topics in (None, {"topic"})
        and filter_.start_offset <= row["offset"] < filter_.end_offset
        and filter_.start_ms <= row["timestamp_ms"] < filter_.end_ms
    ]


def test_batches_before_the_wanted_offset_are_not_read(plain: Path) -> None:
    path = sorted(plain.glob("*.log"))[0]
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF  # In the records of the first batch.
    path.write_bytes(data)
    assert [row["offset"] for row in rows(plain, mode=FAILFAST, wanted=LogFilter(start_offset=3, end_offset=6))] == [
        3,
        4,
        5,
    ]
    with pytest.raises(InputError):
        rows(plain, mode=FAILFAST, wanted=LogFilter(start_offset=2, end_offset=6))


def test_a_segment_whose_last_record_is_the_first_wanted_is_read(plain: Path) -> None:
    for path in sorted(plain.glob("*.log"))[1:3]:
        last = int(path.stem) - 1
        assert rows(plain, wanted=LogFilter(start_offset=last))[0]["offset"] == last


def test_tiered_segments_may_overlap_so_the_next_one_bounds_none(plain: Path, tmp_path: Path) -> None:
    """A leader that was elected uncleanly copies offsets again which a tiered segment of an earlier epoch has too."""
    data, folder = sorted(plain.glob("*.log"))[0].read_bytes(), tmp_path / "remote" / "orders-3"
    folder.mkdir(parents=True)
    names = [f"{base_offset:020d}-{'A' * 21}{base_offset}.log" for base_offset in (0, 1)]
    for name in names:
        (folder / name).write_bytes(data)
    found = [
        (row["offset"], Path(row["source"]).name)
        for row in rows(folder, wanted=LogFilter(start_offset=2, end_offset=4))
    ]
    assert found == [(offset, name) for name in names for offset in (2, 3)]


@pytest.mark.parametrize("has_snapshot", [True, False])
@pytest.mark.parametrize("sample", ["transactions", "none", "compacted-transactions"])
def test_read_committed_gives_what_a_consumer_gets(tmp_path: Path, sample: str, has_snapshot: bool) -> None:
    write_sample(sample, tmp_path)
    folder = tmp_path / DIRECTORY
    for path in () if has_snapshot else folder.glob("*.snapshot"):
        path.unlink()
    found = rows(tmp_path, read_committed=True)
    offsets = [row["offset"] for row in found]
    assert offsets == [row["offset"] for row in expected(folder, committed(folder))]
    assert not any(row["is_control"] for row in found)
    if sample == "transactions":
        assert 0 < len(offsets) < len([row for row in rows(tmp_path) if not row["is_control"]])


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_read_committed_ends_at_the_first_open_transaction(tmp_path: Path, has_snapshot: bool) -> None:
    write_sample("none", tmp_path)
    log = PartitionLog.open(FileStorage(tmp_path), DIRECTORY, CONFIG, now_ms=START_MS)
    spec = BatchSpec(producer_id=ProducerId(9), producer_epoch=ProducerEpoch(0), base_sequence=0, is_transactional=True)
    first = log.log_end_offset
    append(log, spec, 60)
    for number in range(61, 90):
        append(log, BatchSpec(), number)
    log.close(now_ms=START_MS)
    folder = tmp_path / DIRECTORY
    if not has_snapshot:
        for path in folder.glob("*.snapshot"):
            path.unlink()
    assert [row["offset"] for row in rows(tmp_path, read_committed=True)] == list(range(first))


def test_read_committed_works_in_tiered_storage_with_its_indexes(tmp_path: Path) -> None:
    write_sample("transactions", tmp_path / "local")
    tier(tmp_path / "local" / DIRECTORY, tmp_path / "remote")
    wanted = [row["offset"] for row in rows(tmp_path / "local", read_committed=True)]
    assert [row["offset"] for row in rows(tmp_path / "remote", read_committed=True)] == wanted


def test_a_folder_that_cannot_be_listed_is_a_fault(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed-0").mkdir()
    scandir = os.scandir

    def refuse(path: Any = ".") -> Any:
        if str(path).endswith("closed-0"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = rows(tmp_path)
    assert [row["source"] for row in found if row["fault"] is not None] == [str(tmp_path / "closed-0")]
    assert [row for row in found if row["fault"] is None] == rows(plain)


def test_a_path_without_a_segment_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    for path in (tmp_path, tmp_path / "a.txt"):
        with pytest.raises(InputError) as caught:
            rows(path)
        assert str(caught.value) == f"{path}: neither is this a segment of a log nor is there one below it"
