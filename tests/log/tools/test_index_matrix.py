"""Verify, kafka-dump-log's check of an index, and the log itself agree on which time indexes are sound."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
import pytest

from broker.units import DAY_MS, DurationMs, TimeMs
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.storage import FileStorage
from tests.architecture.house import ROOT
from tests.log.cli.test_commands import Answer, answer
from tests.log.samples import CONFIG, DIRECTORY, START_MS, write_sample

RETENTION: Final = attrs.evolve(CONFIG, compacts=False, deletes=True, retention_ms=DurationMs(30 * DAY_MS))
EARLY_MS, LATE_MS = TimeMs(START_MS + 20 * DAY_MS), TimeMs(START_MS + 40 * DAY_MS)
"""When retention must keep the whole sample, and when it must delete what is rolled."""

Entries = list[tuple[int, int]]
ENTRY = struct.Struct(">qi")


def changed(edit: Callable[[Entries], Entries]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(ENTRY.pack(*entry) for entry in edit(list(ENTRY.iter_unpack(data))))


CASES: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "as written": (lambda data: data, None),
    "empty": (lambda _: b"", None),
    "one zero entry behind": (lambda data: data + bytes(12), "delete"),
    "the reserved rest untrimmed": (lambda data: data + bytes(12 * 300), "delete"),
    "nothing but zeros": (lambda _: bytes(12 * 300), "delete"),
    "an entry in the future": (changed(lambda rows: [*rows[:-1], (rows[-1][0] + 400 * DAY_MS, rows[-1][1])]), "keep"),
    "microseconds": (changed(lambda rows: [*rows[:-1], (rows[-1][0] * 1000, rows[-1][1])]), "keep"),
    "seconds": (changed(lambda rows: [(time // 1000, offset) for time, offset in rows]), "delete"),
    "a last entry of long ago": (changed(lambda rows: [*rows[:-1], (5, rows[-1][1])]), "delete"),
    "a first entry of long ago": (changed(lambda rows: [(5, rows[0][1]), *rows[1:]]), ""),
    "two entries exchanged": (changed(lambda rows: [rows[1], rows[0], *rows[2:]]), ""),
    "an entry twice": (changed(lambda rows: [rows[0], *rows]), ""),
    "an offset of another batch": (changed(lambda rows: [(rows[0][0], rows[0][1] + 3), *rows[1:]]), ""),
    "an offset inside its batch, as up to 3.6": (changed(lambda rows: [(time, end - 1) for time, end in rows]), None),
    "half an entry": (lambda data: data + b"\0", ""),
}
"""What becomes of a rolled segment's time index; what retention does wrongly by it, "" for nothing, None for whole."""


def deleted(root: Path, now_ms: TimeMs) -> int | str:
    """Return how many segments the log deletes by time after a clean shutdown, or why it does not open."""
    copy = root.with_name(f"{root.name}-{now_ms}")
    shutil.copytree(root, copy)
    try:
        log = PartitionLog.open(FileStorage(copy), DIRECTORY, RETENTION, LastShutdown(clean=True), now_ms=now_ms)
        log.update_high_watermark(log.log_end_offset)
        return log.delete_old_segments(now_ms=now_ms)
    finally:
        shutil.rmtree(copy)


def sanity(index: Path) -> Answer:
    return answer("dump", index, "--index-sanity-check")


@pytest.mark.parametrize("case", sorted(CASES))
def test_verify_calls_damaged_what_makes_retention_delete_or_keep_wrongly(tmp_path: Path, case: str) -> None:
    edit, expected = CASES[case]
    root = tmp_path / "logs"
    write_sample("none", root)
    index = root / DIRECTORY / f"{0:020d}.timeindex"
    index.write_bytes(edit(index.read_bytes()))
    for path in (root / DIRECTORY).iterdir():
        os.utime(path, (START_MS / 1000, START_MS / 1000))
    segments = len(list((root / DIRECTORY).glob("*.log")))
    if case == "half an entry":
        assert sanity(index).status == 1
    else:
        is_early, is_late = deleted(root, EARLY_MS) != 0, deleted(root, LATE_MS) != segments
        assert {"delete": is_early, "keep": is_late}.get(expected or "", not is_early and not is_late)
        assert (is_early, is_late) == (expected == "delete", expected == "keep")
    found = answer("verify", root)
    assert found.status == (0 if expected is None else 1), found.lines
    if sanity(index).status:
        assert expected is not None
    consequence = f"retention would {expected} 30 records of 2023-11-14 as if of "
    assert (consequence in found.out) == (found.out.count("retention would") == 1) == (expected in ("delete", "keep"))


def test_the_reserved_zeros_of_the_last_segment_are_no_damage(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    shutil.copytree(tmp_path / DIRECTORY, tmp_path / "other-1")
    for directory in (DIRECTORY, "other-1"):
        index = max((tmp_path / directory).glob("*.timeindex"))
        index.write_bytes(index.read_bytes() + bytes(12 * 300))
    assert answer("verify", tmp_path).status == 0
    found = answer("dump", tmp_path, "--index-sanity-check")
    what = "2 indexes end in zeros that a running broker reserves; without them the check passes"
    assert (found.status, found.err) == (0, f"{tmp_path}: {what}\n")


def test_the_zeros_do_not_hide_what_is_wrong_before_them(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    index = max((tmp_path / DIRECTORY).glob("*.timeindex"))
    index.write_bytes(ENTRY.pack(START_MS * 2, 1) + ENTRY.pack(START_MS, 2) + bytes(12 * 300))
    found = answer("dump", index, "--index-sanity-check")
    assert found.status == 1
    assert f"the last timestamp {START_MS} is below the first, {START_MS * 2}" in found.err
    assert answer("verify", tmp_path).status == 1


def test_what_kafka_3_6_wrote_is_whole() -> None:
    """An uncompressed append put the offset of the record with the largest timestamp, not its batch's last."""
    directory = ROOT / "tests" / "real_data" / "reported" / "kafka-3.6-data"
    data = (directory / "orders-0" / f"{0:020d}.timeindex").read_bytes()
    assert [offset for _, offset in ENTRY.iter_unpack(data[: 3 * ENTRY.size])] == [5, 10, 15]
    found = answer("verify", directory)
    assert (found.status, found.lines) == (0, ["55 files, 308 batches, 536 records: no damage"])
