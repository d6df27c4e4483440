"""Open, hanging and aborted transactions, and that plan, result and stats of a compaction stop where one is open."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import attrs
import pytest

from broker.ids import LeaderEpoch, ProducerEpoch, ProducerId
from broker.units import DAY_MS, MINUTE_MS, TimeMs, format_size
from log.batches.build import BatchSpec, build_batch, build_marker
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.record import ControlType, EndTransactionMarker, Record
from log.storage import FileStorage
from tests.architecture.house import ROOT
from tests.log.cli.test_commands import COMPACTED, answer, contents
from tests.log.made import batch
from tests.log.samples import CONFIG, DIRECTORY, START_MS, append

REPORTED = ROOT / "tests" / "real_data" / "reported" / "kafka-3.6-data"
NOW_MS = START_MS + 90_000
OPEN = "producer 5, epoch 0, from offset {}, since 2023-11-14T22:13:20.{}Z (1 min 29 s)"


def spec(producer_id: int, sequence: int = 0) -> BatchSpec:
    return BatchSpec(
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(0),
        base_sequence=sequence,
        is_transactional=True,
    )


def mark(log: PartitionLog, producer_id: int, kind: ControlType) -> None:
    log.append_as_leader(
        build_marker(spec(producer_id), EndTransactionMarker(kind, 1), START_MS),
        leader_epoch=LeaderEpoch(0),
        now_ms=START_MS,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=0,
    )


def write(root: Path, open_at: int, *, aborts: bool = True) -> Path:
    """Write sixty batches of keys that come again; the batch `open_at` opens a transaction that nobody ends."""
    log = PartitionLog.open(FileStorage(root), DIRECTORY, CONFIG, now_ms=START_MS)
    if aborts:
        append(log, spec(7), 0)
        mark(log, 7, ControlType.ABORT)
    for number in range(1, 60):
        append(log, spec(5) if number == open_at else BatchSpec(), number)
    log.close(now_ms=START_MS)
    return root / DIRECTORY


def test_an_open_and_an_aborted_transaction_are_listed(tmp_path: Path) -> None:
    partition = write(tmp_path, open_at=20)
    found = answer("transactions", partition, "--now-ms", NOW_MS)
    assert (found.status, found.lines) == (
        0,
        [
            f"{partition}: open: {OPEN.format(61, 142)}",
            f"{partition}: aborted: producer 7, epoch 0, offsets 0 to 3",
            "0 hanging transactions",
        ],
    )
    rows = [json.loads(line) for line in answer("transactions", partition, "--json", "--now-ms", NOW_MS).lines]
    assert [(row["state"], row["firstOffset"], row["lastOffset"], row["lastStableOffset"]) for row in rows] == [
        ("open", 61, None, 61),
        ("aborted", 0, 3, 61),
    ]


def test_an_open_transaction_of_which_no_coordinator_knows_hangs_after_the_longest_timeout(tmp_path: Path) -> None:
    partition = write(tmp_path, open_at=20)
    for late_ms, status in ((20 * MINUTE_MS, 0), (20 * MINUTE_MS + 1, 1)):
        found = answer("transactions", partition, "--now-ms", START_MS + 142 + late_ms)
        assert (found.status, "hanging: producer 5" in found.out) == (status, bool(status))


def test_what_began_in_deleted_segments_is_read_from_the_snapshot(tmp_path: Path) -> None:
    partition = write(tmp_path, open_at=1)
    for path in sorted(partition.glob("*.log"))[:2]:
        for file in partition.glob(f"{path.stem}.*"):
            file.unlink()
    found = answer("transactions", partition, "--now-ms", NOW_MS)
    assert found.lines[0] == f"{partition}: open: producer 5, epoch 0, from offset 4"


@pytest.mark.parametrize("directory", ["", "txn-0"])
def test_a_coordinators_log_beside_it_says_whose_transaction_it_is(directory: str) -> None:
    found = answer("transactions", REPORTED / directory, "--now-ms", 1795832286000)
    assert found.status == 0
    assert (
        "offset 4, since 2026-11-28T02:18:05.464Z (536 ms), transactional id 'hangs', coordinator: Ongoing" in found.out
    )
    assert "aborted: producer 4, epoch 0, offsets 2 to 3" in found.out


def test_a_transaction_that_its_coordinator_has_ended_hangs(tmp_path: Path) -> None:
    """KIP-664: the coordinator's last word is of another transaction, here one without this partition."""
    shutil.copytree(REPORTED / "__transaction_state-1", tmp_path / "__transaction_state-1")
    shutil.copytree(REPORTED / "__transaction_state-2", tmp_path / "__transaction_state-2")
    shutil.copytree(REPORTED / "txn-0", tmp_path / "other-0")
    found = answer("transactions", tmp_path, "--now-ms", 1795832286000)
    assert (found.status, found.lines[-1]) == (1, "1 hanging transaction")
    assert "other-0: hanging: producer 5" in found.out


@pytest.mark.parametrize(("open_at", "cleaned"), [(1, "0 of 8"), (20, "2 of 8"), (59, "7 of 8")])
def test_plan_result_and_stats_agree_below_the_last_stable_offset(tmp_path: Path, open_at: int, cleaned: str) -> None:
    partition = write(tmp_path / "logs", open_at, aborts=False)
    found = answer("compact", partition, "--out", tmp_path / "out", *COMPACTED[:2], "--now-ms", NOW_MS)
    assert found.status == 0
    planned, done = found.out.split("\ntopic-0: before ")
    assert f"  {cleaned} segments cleaned: " in planned
    first_offset = (open_at - 1) * 3
    held = f"nothing from offset {first_offset} on, held by a transaction, open: producer 5, epoch 0, from offset"
    assert held in planned
    assert held in done
    stats = json.loads(answer("stats", partition, "--json", "--total-only", "--now-ms", NOW_MS).lines[-1])["compaction"]
    assert [text.startswith(held) for text in stats["heldBy"]] == [True]
    bases = sorted(int(path.stem) for path in partition.glob("*.log"))
    end = max(base for base in bases if base <= first_offset)
    assert f"of {stats['recordsBefore']} records stay" in planned
    assert (f"cleaned up to offset {end}" in done) == (end > 0)
    after = {path.name for path in (tmp_path / "out" / DIRECTORY).glob("*.log")}
    assert {f"{base:020d}.log" for base in bases if base >= end} <= after
    size = sum(path.stat().st_size for path in (tmp_path / "out" / DIRECTORY).glob("*.log") if int(path.stem) < end)
    assert size == stats["bytesAfter"]


@pytest.mark.parametrize("days", [0, 2])
@pytest.mark.parametrize("how", [(), ("--include-active",)])
@pytest.mark.parametrize("release", ["4.4", "4.3", "3.7"])
def test_plan_result_and_stats_agree_on_empty_batches_that_active_producers_keep(
    tmp_path: Path, how: tuple[str, ...], release: str, days: int
) -> None:
    """Three producers write keys that others write again: a pass leaves their last batches empty, for a day.

    A release also keeps the last batch of the log, which has no key here, so that it keeps its end.
    """
    log = PartitionLog.open(FileStorage(tmp_path / "logs"), DIRECTORY, CONFIG, now_ms=START_MS)
    for number in range(40):
        append(log, attrs.evolve(spec(11 + number % 3, number // 3 * 3), is_transactional=False), number % 2)
    append(log, spec(7), 0)
    mark(log, 7, ControlType.COMMIT)
    for number in range(20):
        append(log, BatchSpec(), number % 2)
    without_key = Record(log.log_end_offset, START_MS, None, b"v")
    log.append_as_follower(
        build_batch(BatchSpec(log.log_end_offset, partition_leader_epoch=LeaderEpoch(0)), [without_key]),
        now_ms=START_MS,
    )
    log.close(now_ms=START_MS)
    partition, now = tmp_path / "logs" / DIRECTORY, ("--now-ms", START_MS + days * DAY_MS)
    found = answer("compact", partition, "--out", tmp_path / "out", *COMPACTED[:2], *how, "--kafka", release, *now)
    assert found.status == 0, found.err
    after = {path.name: path.stat().st_size for path in (tmp_path / "out" / DIRECTORY).glob("*.log")}
    left = max(partition.glob("*.log"))
    size = sum(after.values()) - (0 if how else after[left.name])
    assert f"become {format_size(size)}," in found.out
    if how and release == "4.4":
        row = json.loads(answer("stats", partition, "--json", "--total-only", *now).lines[-1])
        assert row["compaction"]["bytesAfter"] == size


def test_a_segment_younger_than_the_compaction_lag_is_cleaned_neither_in_the_plan_nor_in_the_result(
    tmp_path: Path,
) -> None:
    """LogCleanerManager: the first dirty segment with a largest timestamp above now - lag bounds the pass."""
    partition = write(tmp_path / "logs", 59, aborts=False)
    bases = sorted(int(path.stem) for path in partition.glob("*.log"))
    largest = [
        max(each.max_timestamp for each in batches_in((partition / f"{base:020d}.log").read_bytes())) for base in bases
    ]
    for now_ms in (largest[0], largest[2] + 999, largest[2] + 1000):
        count = sum(time <= now_ms - 1000 for time in largest[:7])
        out = tmp_path / f"out-{now_ms}"
        lag = ("--config", "min.compaction.lag.ms=1000", "--now-ms", now_ms)
        found = answer("compact", partition, "--out", out, *COMPACTED[:2], *lag)
        planned, done = found.out.split("\ntopic-0: before ")
        assert (found.status, f"  {count} of 8 segments cleaned: " in planned) == (0, True), planned
        assert (f"cleaned up to offset {bases[count]}" in done) == (count > 0), done


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("segment", [0, 3, -1])
def test_compact_refuses_what_it_cannot_read_and_changes_nothing(
    tmp_path: Path, segment: int, checkpoints: bool
) -> None:
    """Kafka's cleaner marks such a partition uncleanable; cutting it is for recovery."""
    partition = write(tmp_path / "logs", open_at=59)
    path = sorted(partition.glob("*.log"))[segment]
    path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1]))
    if checkpoints:
        (tmp_path / "logs" / ".kafka_cleanshutdown").write_text("")
        (tmp_path / "logs" / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 180\n")
    before = contents(tmp_path / "logs")
    for how in (("--in-place", "--yes"), ("--out", tmp_path / "out")):
        found = answer("compact", partition, *how, *COMPACTED)
        assert found.status == 1
        assert "nothing is compacted, `brokerside log recover` cuts the log there" in found.err
        assert contents(tmp_path / "logs") == before
    assert not (tmp_path / "out" / DIRECTORY).exists()


def test_compact_refuses_a_log_that_ends_below_its_start(tmp_path: Path) -> None:
    """Opening such a log deletes all of it."""
    partition = write(tmp_path, open_at=59)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 500\n")
    before = contents(tmp_path)
    found = answer("compact", partition, "--in-place", "--yes", *COMPACTED)
    assert (found.status, contents(tmp_path)) == (1, before)
    assert "the log ends at 181, below its start in log-start-offset-checkpoint, 500" in found.err


@pytest.mark.parametrize("content", ["\0" * 30, "0\n2\ntopic 0 1", "1\n1\ntopic 0 100\n", "0\n9\n"])
@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_recover_warns_of_a_checkpoint_that_it_cannot_read_and_recovers_all(
    tmp_path: Path, name: str, content: str
) -> None:
    partition = write(tmp_path / "logs", open_at=59)
    (tmp_path / "logs" / name).write_text(content)
    found = answer("recover", partition, "--out", tmp_path / "out")
    assert found.status == 0
    assert found.err.startswith(f"warning: {tmp_path / 'logs'}: {name}: ")
    assert found.err.endswith("every offset in it is taken as 0, as a broker does\n")
    assert "  log from offset 0 to before 181" in found.lines


def test_stats_count_from_the_log_start_offset(tmp_path: Path) -> None:
    partition = write(tmp_path, open_at=59)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 50\n")
    row = json.loads(answer("stats", partition, "--total-only", "--json", "--now-ms", TimeMs(NOW_MS)).lines[-1])
    assert (row["firstOffset"], row["lastOffset"], row["records"]) == (50, 180, 131)


@pytest.mark.parametrize(
    ("factor", "divisor", "expected"),
    [
        (1, 1, None),
        (1, 1000, "year 1970: looks like seconds; retention by time deletes at once"),
        (1000, 1, "year 55840: looks like microseconds; retention by time will not delete"),
        (2, 1, "year 2077: lies in the future; retention by time will not delete"),
    ],
)
def test_stats_show_dates_and_say_which_timestamps_are_no_milliseconds(
    tmp_path: Path, factor: int, divisor: int, expected: str | None
) -> None:
    log = PartitionLog.open(FileStorage(tmp_path), DIRECTORY, CONFIG, now_ms=START_MS)

    log.append_as_follower(
        batch(timestamp=START_MS * factor // divisor, partition_leader_epoch=LeaderEpoch(0)), now_ms=START_MS
    )
    log.close(now_ms=START_MS)
    row = json.loads(answer("stats", tmp_path, "--total-only", "--json", "--now-ms", NOW_MS).lines[-1])
    assert row["timestamps"]["doubts"] == ([] if expected is None else [expected])
    shown = answer("stats", tmp_path, "--total-only", "--now-ms", NOW_MS).out
    assert ("looks like" in shown or "in the future" in shown) == (expected is not None)
    if expected is None:
        assert "2023-11-14T22:13:20.000Z to 2023-11-14T22:13:20.000Z" in shown
