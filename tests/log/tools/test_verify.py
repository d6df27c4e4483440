"""Verifying log files: what Kafka and we write is whole, and every damage is reported with its place."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from broker.ids import Offset
from broker.units import TimeMs
from log.batches.batch_v2 import HEADER
from log.batches.build import BatchSpec, build_batch
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.record import Record
from log.storage.checkpoints import LEADER_EPOCH_FILE
from log.storage.metadata_files import META_PROPERTIES_FILE
from log.tools.findings import Checked, Finding
from log.tools.sources import expand
from log.tools.verify import folder_parts, in_sequence, verify_part
from tests.log.cli.test_commands import answer
from tests.log.samples import DIRECTORY, SAMPLES, START_MS, write_sample


def findings(path: Path, *, keep_going: bool = True) -> tuple[list[Finding], Checked]:
    found: list[Finding] = []
    total = Checked()
    for folder in expand(path):
        parts = folder_parts(folder)
        reports = (verify_part(part, lambda _: None, keep_going=keep_going) for part in parts)
        for report in in_sequence(parts, reports):
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


@pytest.mark.parametrize("keep_going", [True, False])
def test_a_flipped_bit_is_found_at_its_batch_and_the_rest_is_read_if_asked(partition: Path, keep_going: bool) -> None:
    path = segments(partition)[1]
    positions = positions_of_batches(path)
    change(path, positions[2] + HEADER.size + 5)
    found, total = findings(partition, keep_going=keep_going)
    base_offset = int.from_bytes(path.read_bytes()[positions[2] : positions[2] + 8], "big")
    first = found[0]
    assert (first.file, first.position, first.batch_offset) == (str(path), positions[2], base_offset)
    assert "crc" in first.what
    end = positions[3] if keep_going else positions[-1]
    assert total.skipped_size_bytes == end - positions[2]
    if keep_going:
        assert (len(found), total.skipped_batch_count, total.record_count) == (1, 1, 180 - 3)


def overlapped(partition: Path, base_offset: int) -> None:
    """Give the second segment a lower offset to begin at."""
    second = segments(partition)[1]
    for path in sorted(partition.glob(f"{second.stem}.*")):
        path.rename(path.with_name(f"{base_offset:020d}{path.suffix}"))


def shortened_batch(partition: Path) -> None:
    """Let the last offset delta of a batch of three be 0, with the checksum of that."""
    path = segments(partition)[0]
    content = bytearray(path.read_bytes())
    content[23:27] = (0).to_bytes(4, "big")
    content[17:21] = crc32c(bytes(content[21 : positions_of_batches(path)[1]])).to_bytes(4, "big")
    path.write_bytes(content)


def batch_changed(segment: int, batch: int, place: int, edit: Callable[[int], int]) -> Callable[[Path], None]:
    """Change a byte of a header that no checksum covers."""

    def damage(partition: Path) -> None:
        path = segments(partition)[segment]
        change(path, positions_of_batches(path)[batch] + place, edit)

    return damage


def torn(partition: Path) -> None:
    path = segments(partition)[-1]
    path.write_bytes(path.read_bytes()[:-3])


def removed(ending: str) -> Callable[[Path], None]:
    return lambda partition: (partition / f"{0:020d}{ending}").unlink()


def half_an_entry(ending: str) -> Callable[[Path], None]:
    def damage(partition: Path) -> None:
        path = next(path for path in sorted(partition.glob(f"*{ending}")) if path.stat().st_size)
        path.write_bytes(path.read_bytes() + b"\0")

    return damage


def entry_changed(ending: str, size: int) -> Callable[[Path], None]:
    """Change the last byte of the second entry: a position, or an offset."""

    def damage(partition: Path) -> None:
        path = next(path for path in sorted(partition.glob(f"*{ending}")) if path.stat().st_size > 24)
        change(path, 2 * size - 1)

    return damage


def reserved_rest(partition: Path) -> None:
    """Leave what a broker reserves behind the entries of an index; that is no damage."""
    for path in partition.glob("*.index"):
        if content := path.read_bytes():
            path.write_bytes(content + bytes(8 * 20))


EPOCH_FALLS = {
    "its leader epoch is below that of a batch before",
    "its leader epoch is not that of leader-epoch-checkpoint",
}
BUILT_ANEW = ", which a broker builds anew when it starts"


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (torn, {"the last [0-9]+ bytes are not a whole batch"}),
        (batch_changed(1, 2, 7, lambda byte: byte - 3), {"its offsets do not follow those of the batch before"}),
        (batch_changed(1, -2, 0, lambda byte: byte ^ 1), {"its offsets cannot be in this segment"}),
        (batch_changed(-1, 1, 15, lambda _: 0), EPOCH_FALLS),
        (batch_changed(0, 0, 16, lambda _: 18), {"its magic is above 2, and no broker opens such a log"}),
        (shortened_batch, {"the offsets of its records do not ascend to its last offset"}),
        (entry_changed(".index", 8), {r"entry \("}),
        (entry_changed(".timeindex", 12), {r"entry \("}),
        (half_an_entry(".index"), {".*multiple"}),
        (half_an_entry(".timeindex"), {".*multiple"}),
        (reserved_rest, set[str]()),
        (removed(".index"), {f"has no .index{BUILT_ANEW}"}),
        (removed(".timeindex"), {f"has no .timeindex{BUILT_ANEW}"}),
        (removed(".log"), {"has no log beside it, and a broker removes it when it starts"}),
        (lambda partition: overlapped(partition, 1), {"begins below the last offset of the segment before"}),
        (lambda partition: overlapped(partition, 29), {"begins below the last offset of the segment before"}),
    ],
)
def test_each_damage_is_reported(partition: Path, damage: Callable[[Path], None], expected: set[str]) -> None:
    damage(partition)
    found = [each.what for each in findings(partition)[0]]
    assert [what for what in expected if not any(re.match(what, each) for each in found)] == [], found
    assert bool(found) == bool(expected)


def test_damaged_snapshots_and_checkpoints_are_found(tmp_path: Path) -> None:
    write_sample("transactions", tmp_path)
    partition = tmp_path / DIRECTORY
    snapshot = max(partition.glob("*.snapshot"))
    change(snapshot, 20)
    (partition / LEADER_EPOCH_FILE).write_text("0\n2\n0 0\n")
    found, _ = findings(tmp_path)
    assert sorted(Path(each.file).name for each in found) == [snapshot.name, LEADER_EPOCH_FILE]


@pytest.mark.parametrize(("content", "is_whole"), [("", False), ("#\n", False), ("broker.id=3\n", True)])
def test_meta_properties_that_name_nobody_are_found(tmp_path: Path, content: str, is_whole: bool) -> None:
    write_sample("none", tmp_path)
    properties = tmp_path / META_PROPERTIES_FILE
    properties.write_text(content)
    found = [each.line() for each in findings(tmp_path)[0]]
    what = "names neither cluster nor node, and no broker starts on this directory"
    assert found == ([] if is_whole else [f"{properties}: {what}"])


def test_a_segment_overlaps_with_all_before_it_not_with_the_last_one_alone(partition: Path) -> None:
    (folder,) = expand(partition)
    parts = [part for part in folder_parts(folder) if part.file is not None and part.file.kind == ".log"][:3]
    base_offsets = [part.file.base_offset for part in parts if part.file is not None]
    assert len(base_offsets) == 3
    reports = [verify_part(part, lambda _: None, keep_going=True) for part in parts]
    ends = (base_offsets[2], base_offsets[1] + 1, base_offsets[2])
    given = [(attrs.evolve(report, last_offset=end),) for (report,), end in zip(reports, ends, strict=True)]
    found = [[each.what for each in report.findings] for report in in_sequence(parts, given)]
    overlap = f"begins below the last offset of the segment before, {base_offsets[2]}"
    assert [overlap in each for each in found] == [False, True, True]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("0 0\n1 5\n", None),
        ("0 5\n1 5\n", "epoch 1 from 5 is not above the one before"),
        ("1 0\n1 5\n", "epoch 1 from 5 is not above the one before"),
        ("0 5\n1 4\n", "epoch 1 from 4 is not above the one before"),
    ],
)
def test_epochs_and_their_start_offsets_both_ascend(tmp_path: Path, entries: str, expected: str | None) -> None:
    write_sample("none", tmp_path)
    checkpoint = tmp_path / DIRECTORY / LEADER_EPOCH_FILE
    checkpoint.write_text(f"0\n2\n{entries}")
    found = [each.what for each in findings(tmp_path)[0] if each.file == str(checkpoint)]
    assert found == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("base_offset", "aborted", "expected"),
    [
        (0, [(0, 0), (1, 4)], []),
        (0, [(2, 1)], ["aborted transaction 2 to 1 is out of order"]),
        (0, [(0, 4), (3, 4)], ["aborted transaction 3 to 4 is out of order"]),
        (0, [(0, 4), (1, 3), (2, 2)], ["aborted transaction 1 to 3 is out of order"]),
        (10, [(3, 10)], []),
        (10, [(3, 9)], ["aborted transaction 3 to 9 is out of order"]),
    ],
)
def test_aborted_transactions_end_one_after_another_from_their_segment_on(
    tmp_path: Path, base_offset: int, aborted: list[tuple[int, int]], expected: list[str]
) -> None:
    """Each in the order in which its marker was written."""
    index = tmp_path / "t-0" / f"{base_offset:020d}.txnindex"
    index.parent.mkdir()
    index.write_bytes(b"".join(struct.pack(">hqqqq", 0, 1, first, last, last + 1) for first, last in aborted))
    assert [each.what for each in findings(index)[0] if "no log beside it" not in each.what] == expected


def test_a_line_reports_file_byte_offset_and_what() -> None:
    assert Finding("f.log", "is bad", 7, 9).line() == "f.log: at byte 7, batch at offset 9: is bad"
    assert Finding("f.log", "is bad", more_count=2).line() == "f.log: is bad (2 more like it)"


def test_an_index_that_is_named_alone_counts_as_a_file(partition: Path) -> None:
    found, total = findings(partition / "00000000000000000000.index")
    assert (found, total.file_count) == ([], 1)


def constant(root: Path, codec: Codec, batch_count: int = 8) -> Path:
    """A partition whose batches of constant values, as kafka-producer-perf-test writes, stand for 128 MB in all."""
    record = Record(Offset(0), TimeMs(START_MS), None, b"x" * 16_000_000)
    (root / "perf-0").mkdir()
    path = root / "perf-0" / f"{0:020d}.log"
    batches = [build_batch(BatchSpec(base_offset=Offset(0), codec=codec), [record])]
    batches += [number.to_bytes(8, "big") + batches[0][8:] for number in range(1, batch_count)]
    path.write_bytes(b"".join(batches))
    return path


def test_a_sound_segment_that_stands_for_more_than_is_read_is_not_damaged(tmp_path: Path) -> None:
    """What is beyond the allowance has its checksum checked, and is named as not read; a bit turned there is damage."""
    path = constant(tmp_path, Codec.ZSTD)
    size = path.stat().st_size // 8
    for words in ((), ("--keep-going",)):
        found = answer("verify", path.parent, *words)
        assert (found.status, found.err) == (0, "")
        assert re.fullmatch(
            rf"{path}: at byte {4 * size}, batch at offset 4: not read further: .*; its checksum is right"
            r" \(3 more like it\)",
            found.lines[0],
        )
        assert found.lines[1:] == [
            "1 file, 4 batches, 4 records: no damage",
            f"passed over: {4 * size:,} bytes, 4 batches",
        ]
    rows = [json.loads(line) for line in answer("verify", "--json", path.parent).lines]
    assert (rows[-1]["damages"], rows[-1]["skipped_batch_count"]) == (0, 4)
    (figures,) = (json.loads(line) for line in answer("stats", "--json", "--total-only", path.parent).lines)
    assert (figures["damages"], figures["damagedBytes"], figures["batchesNotRead"]) == (0, 0, 4)
    compacted = answer("compact", "--include-active", "--out", tmp_path / "out", path.parent)
    assert compacted.status == 1
    assert compacted.err.endswith("its checksum is right (3 more like it); nothing is compacted\n")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert answer("verify", path.parent).status == 1


@pytest.mark.parametrize(
    "words",
    [
        "stats",
        "stats --no-compaction",
        "dump --deep-iteration",
        "dump --print-data-log --skip-record-metadata --json",
        "dump --deep-iteration --keep-going",
        "transactions",
    ],
)
def test_no_command_calls_a_sound_segment_damaged_that_stands_for_more_than_is_read(tmp_path: Path, words: str) -> None:
    path = constant(tmp_path, Codec.ZSTD)
    found = answer(*words.split(), path.parent)
    assert found.status == 0, found.err
    assert "damage" not in found.err
    assert found.err.count("not read further: ") == (words == "stats" or "dump" in words)


def test_the_limit_does_not_hide_a_codec_that_refuses(tmp_path: Path) -> None:
    """A batch that a codec cannot read is damage, though its checksum is right."""
    path = constant(tmp_path, Codec.NONE, batch_count=1)
    content = bytearray(path.read_bytes()[:200])
    content[8:12] = (200 - 12).to_bytes(4, "big")
    content[22] = Codec.ZSTD
    content[17:21] = crc32c(bytes(content[21:])).to_bytes(4, "big")
    path.write_bytes(content)
    assert answer("verify", path.parent).status == 1
