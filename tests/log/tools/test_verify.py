"""Verifying log files: what Kafka and we write is whole, and every damage is told with its place."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from log.batches.batch_v2 import HEADER
from log.codecs.crc import crc32c
from log.segments.file_names import LOG, OFFSET_INDEX
from log.storage.checkpoints import LEADER_EPOCH_FILE
from log.tools.findings import Checked, Finding
from log.tools.sources import expand, expand_all, named_file
from log.tools.verify import folder_parts, in_sequence, verify, verify_part
from tests.log.samples import DIRECTORY, SAMPLES, write_sample


def findings(path: Path, *, keep_going: bool = True) -> tuple[list[Finding], Checked]:
    found: list[Finding] = []
    total = Checked()
    for folder in expand(path):
        for report in verify(folder, keep_going=keep_going, advance=lambda _: None):
            found.extend(report.findings)
            total += report.checked
    return found, total


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write_sample("none", tmp_path)
    return tmp_path / DIRECTORY


def segments(partition: Path) -> list[Path]:
    return sorted(path for path in partition.glob("*.log") if path.stat().st_size)


def change(path: Path, position: int, edit: Callable[[int], int] = lambda byte: byte ^ 1) -> None:
    content = bytearray(path.read_bytes())
    content[position] = edit(content[position])
    path.write_bytes(content)


def positions_of_batches(path: Path) -> list[int]:
    content = path.read_bytes()
    positions = [0]
    while positions[-1] < len(content):
        positions.append(positions[-1] + 12 + int.from_bytes(content[positions[-1] + 8 : positions[-1] + 12], "big"))
    return positions


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_what_we_write_is_whole(tmp_path: Path, sample: str) -> None:
    log = write_sample(sample, tmp_path)
    found, total = findings(tmp_path)
    assert found == []
    assert total.size_bytes >= log.size_bytes
    assert total.skipped_size_bytes == 0


def test_a_flipped_bit_in_records_is_found_at_its_batch_and_the_rest_is_read(partition: Path) -> None:
    path = segments(partition)[1]
    positions = positions_of_batches(path)
    change(path, positions[2] + HEADER.size + 5)
    found, total = findings(partition)
    base_offset = int.from_bytes(path.read_bytes()[positions[2] : positions[2] + 8], "big")
    assert [(each.file, each.position, each.batch_offset) for each in found] == [(str(path), positions[2], base_offset)]
    assert "crc" in found[0].what
    assert (total.skipped_size_bytes, total.skipped_batch_count) == (positions[3] - positions[2], 1)
    assert total.record_count == 180 - 3


def test_without_keep_going_a_file_is_read_to_its_first_damage(partition: Path) -> None:
    path = segments(partition)[1]
    positions = positions_of_batches(path)
    change(path, positions[2] + HEADER.size + 5)
    found, total = findings(partition, keep_going=False)
    assert [each.position for each in found if each.file == str(path)] == [positions[2]]
    assert total.skipped_size_bytes == positions[-1] - positions[2]


def test_a_torn_tail_is_found(partition: Path) -> None:
    path = segments(partition)[-1]
    positions = positions_of_batches(path)
    path.write_bytes(path.read_bytes()[:-3])
    found, _ = findings(partition)
    tail = positions[-1] - 3 - positions[-2]
    assert found[0].what == f"the last {tail} bytes are not a whole batch"
    assert found[0].position == positions[-2]


def test_offsets_that_go_back_are_found_though_their_checksum_is_right(partition: Path) -> None:
    path = segments(partition)[1]
    position = positions_of_batches(path)[2]
    change(path, position + 7, lambda byte: byte - 3)  # The checksum does not cover the base offset.
    found, _ = findings(partition)
    assert "its offsets do not follow those of the batch before" in [each.what for each in found]


def test_offsets_outside_the_segment_are_found(partition: Path) -> None:
    path = segments(partition)[1]
    change(path, positions_of_batches(path)[-2])  # The highest byte of the last base offset.
    found, _ = findings(partition)
    assert "its offsets cannot be in this segment" in [each.what for each in found]


def test_a_leader_epoch_that_falls_or_is_not_the_checkpoints_is_found(partition: Path) -> None:
    path = segments(partition)[-1]
    position = positions_of_batches(path)[1]
    change(path, position + 15, lambda _: 0)
    found, _ = findings(partition)
    what = {each.what: each.batch_offset for each in found}
    assert set(what) == {
        "its leader epoch is below that of a batch before",
        "its leader epoch is not that of leader-epoch-checkpoint",
    }


def test_record_offsets_that_do_not_ascend_are_found(partition: Path) -> None:
    path = segments(partition)[0]
    content = bytearray(path.read_bytes())
    end = positions_of_batches(path)[1]
    content[23:27] = (0).to_bytes(4, "big")  # The last offset delta of a batch of three.
    content[17:21] = crc32c(bytes(content[21:end])).to_bytes(4, "big")
    path.write_bytes(content)
    found, _ = findings(partition)
    assert ("the offsets of its records do not ascend to its last offset", 0, 0) in [
        (each.what, each.position, each.batch_offset) for each in found
    ]


@pytest.mark.parametrize("ending", [".index", ".timeindex"])
def test_a_changed_index_entry_is_found_at_its_place(partition: Path, ending: str) -> None:
    path = next(path for path in sorted(partition.glob(f"*{ending}")) if path.stat().st_size > 24)
    size = 8 if ending == ".index" else 12
    change(path, 2 * size - 1)  # The last byte of the second entry: a position, or an offset.
    found, _ = findings(partition)
    assert {each.file for each in found} == {str(path)}
    assert found[0].position == size
    assert found[0].what.startswith("entry (")


@pytest.mark.parametrize("ending", [".index", ".timeindex"])
def test_an_index_of_half_an_entry_is_found(partition: Path, ending: str) -> None:
    path = next(path for path in sorted(partition.glob(f"*{ending}")) if path.stat().st_size)
    path.write_bytes(path.read_bytes() + b"\0")
    found, _ = findings(partition)
    assert [each.file for each in found] == [str(path)]
    assert "multiple" in found[0].what


def test_the_reserved_rest_of_an_index_is_no_damage(partition: Path) -> None:
    for path in [*partition.glob("*.index"), *partition.glob("*.timeindex")]:
        size = 8 if path.suffix == ".index" else 12
        content = path.read_bytes()
        if path.suffix == ".index" and content:
            path.write_bytes(content + bytes(size * 20))
    assert findings(partition)[0] == []


@pytest.mark.parametrize(
    ("name", "what"),
    [("00000000000000000000.index", "has no .index"), ("00000000000000000000.timeindex", "has no .timeindex")],
)
def test_a_missing_index_is_found(partition: Path, name: str, what: str) -> None:
    (partition / name).unlink()
    found, _ = findings(partition)
    assert [each.what for each in found] == [f"{what}, which a broker builds anew when it starts"]


def test_an_index_without_a_log_is_found(partition: Path) -> None:
    path = segments(partition)[0]
    path.unlink()
    found, _ = findings(partition)
    assert {each.what for each in found} == {"has no log beside it, and a broker removes it when it starts"}


def test_damaged_snapshots_and_checkpoints_are_found(tmp_path: Path) -> None:
    write_sample("transactions", tmp_path)
    partition = tmp_path / DIRECTORY
    snapshot = max(partition.glob("*.snapshot"))
    change(snapshot, 20)
    (partition / LEADER_EPOCH_FILE).write_text("0\n2\n0 0\n")
    found, _ = findings(tmp_path)
    assert sorted(Path(each.file).name for each in found) == [snapshot.name, LEADER_EPOCH_FILE]


@pytest.mark.parametrize("overlap_is_one_offset", [False, True])
def test_segments_that_overlap_are_found(partition: Path, overlap_is_one_offset: bool) -> None:
    first, second = segments(partition)[:2]
    base_offset = int(second.stem) - 1 if overlap_is_one_offset else 1
    for path in sorted(partition.glob(f"{second.stem}.*")):
        path.rename(path.with_name(f"{base_offset:020d}{path.suffix}"))
    found, _ = findings(partition)
    assert any(each.what.startswith("begins below the last offset of the segment before") for each in found)
    assert first.exists()


def test_a_segment_overlaps_with_all_before_it_not_with_the_last_one_alone(partition: Path) -> None:
    (folder,) = expand(partition)
    parts = [part for part in folder_parts(folder) if part.file is not None and part.file.kind == ".log"][:3]
    base_offsets = [part.file.base_offset for part in parts if part.file is not None]
    assert len(base_offsets) == 3
    reports = [verify_part(part, lambda _: None, keep_going=True) for part in parts]
    ends = (base_offsets[2], base_offsets[1] + 1, base_offsets[2])
    given = [(attrs.evolve(report, last_offset=end),) for (report,), end in zip(reports, ends, strict=True)]
    told = [[each.what for each in report.findings] for report in in_sequence(parts, given)]
    overlap = f"begins below the last offset of the segment before, {base_offsets[2]}"
    assert [overlap in each for each in told] == [False, True, True]


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ("0 0\n1 5\n", None),
        ("0 5\n1 5\n", "epoch 1 from 5 is not above the one before"),
        ("1 0\n1 5\n", "epoch 1 from 5 is not above the one before"),
        ("0 5\n1 4\n", "epoch 1 from 4 is not above the one before"),
    ],
)
def test_epochs_and_their_start_offsets_both_ascend(tmp_path: Path, entries: str, told: str | None) -> None:
    write_sample("none", tmp_path)
    checkpoint = tmp_path / DIRECTORY / LEADER_EPOCH_FILE
    checkpoint.write_text(f"0\n2\n{entries}")
    found = [each.what for each in findings(tmp_path)[0] if each.file == str(checkpoint)]
    assert found == ([] if told is None else [told])


@pytest.mark.parametrize(
    ("aborted", "told"),
    [
        ([(0, 0), (1, 4)], None),
        ([(2, 1)], "aborted transaction 2 to 1 is out of order"),
        ([(0, 4), (3, 4)], "aborted transaction 3 to 4 is out of order"),
        ([(0, 4), (1, 3), (2, 2)], "aborted transaction 1 to 3 is out of order"),
    ],
)
def test_aborted_transactions_end_one_after_another(
    tmp_path: Path, aborted: list[tuple[int, int]], told: str | None
) -> None:
    """In the segment from offset 0; each in the order in which its marker was written."""
    index = tmp_path / "t-0" / "00000000000000000000.txnindex"
    index.parent.mkdir()
    entries = [struct.pack(">hqqqq", 0, 1, first, last, last + 1) for first, last in aborted]
    index.write_bytes(b"".join(entries))
    found = [each.what for each in findings(index)[0] if "no log beside it" not in each.what]
    assert found == ([] if told is None else [told])


def test_an_aborted_transaction_that_ended_before_its_segment_is_out_of_order(tmp_path: Path) -> None:
    index = tmp_path / "t-0" / "00000000000000000010.txnindex"
    index.parent.mkdir()
    for last, expected in ((10, []), (9, ["aborted transaction 3 to 9 is out of order"])):
        index.write_bytes(struct.pack(">hqqqq", 0, 1, 3, last, last + 1))
        assert [each.what for each in findings(index)[0] if "no log beside it" not in each.what] == expected


def test_a_line_tells_file_byte_offset_and_what() -> None:
    assert Finding("f.log", "is bad", 7, 9).line() == "f.log: at byte 7, batch at offset 9: is bad"
    assert Finding("f.log", "is bad", more_count=2).line() == "f.log: is bad (2 more like it)"


def test_a_magic_that_no_broker_opens_is_found(partition: Path) -> None:
    path = segments(partition)[0]
    change(path, 16, lambda _: 18)  # The checksum does not cover the magic.
    found, _ = findings(partition)
    assert ("its magic is above 2, and no broker opens such a log", 0) in [(each.what, each.position) for each in found]


def test_an_index_that_is_named_alone_counts_as_a_file(partition: Path) -> None:
    found, total = findings(partition / "00000000000000000000.index")
    assert (found, total.file_count) == ([], 1)


def test_a_directory_that_is_named_beside_some_of_its_files_is_read_whole(partition: Path) -> None:
    first = sorted(partition.glob(f"*{LOG}"))[0]
    for paths in ([first, partition], [partition, first]):
        (folder,) = expand_all(paths)
        assert folder.is_whole
        assert [file.name for file in folder.files] == [file.name for file in expand(partition)[0].files]
    (some,) = expand_all([first])
    assert (len(some.files), some.is_whole) == (1, False)


def test_deleted_files_are_passed_over_and_swapped_ones_are_unfinished(partition: Path) -> None:
    first, second, *_ = sorted(partition.glob(f"*{LOG}"))
    first.rename(partition / f"{first.name}.deleted")
    second.rename(partition / f"{second.name}.swap")
    (folder,) = expand(partition)
    assert [file.name for file in folder.unfinished] == [f"{second.name}.swap"]
    assert {first.name, second.name}.isdisjoint(file.name for file in folder.files)


def test_the_files_of_a_segment_are_on_their_way_together(partition: Path) -> None:
    first = sorted(partition.glob(f"*{LOG}"))[0]
    deleted = first.rename(partition / f"{first.name}.deleted")
    assert named_file(deleted).sibling(OFFSET_INDEX).name == f"{first.stem}.index.deleted"
