"""Each invariant of logs that are cut and compacted is seen red: behind the model's back, or with a broken model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

import log.compaction.selection
import replication.retention.log_manager
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.log_config import LogConfig
from replication.checkers import INVARIANTS, check_history, check_keys, is_expired, may_skip
from replication.checkers.clients import ConsumedRecord
from replication.checkers.observed_log import Entry
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.retention_logs import check_gaps
from replication.checkers.retention_model import BatchReader, Held, RetainedObservedLog, RetainedReferenceLog
from replication.retention import Retention
from replication.roles.replica_log import ReplicaLog
from replication.simulation import Fault, FaultKind, NetworkOptions, Options, Simulation, quiet, run
from replication.simulation.retention import with_retention

Patch = pytest.MonkeyPatch

COMPACT: Final = Retention(compacts=True, deletes=False, segment_bytes=SizeBytes(500), key_count=3)
DELETE: Final = Retention(segment_bytes=SizeBytes(500), retention_bytes=SizeBytes(100_000))
QUIET: Final = quiet(1, DurationMs(30_000))
STRIKE_MS: Final = 8_000


def broken_by(action: Callable[[ReplicaLog], None], retention: Retention = DELETE) -> set[str]:
    """The codes of what is found when `action` is done to the log of follower 1 in a healthy cluster."""
    simulation = Simulation(with_retention(QUIET, retention))
    simulation.run_until(STRIKE_MS)
    assert simulation.findings == ()
    replica = simulation.cluster.nodes[BrokerId(1)].logs[0]
    simulation.cluster.at(STRIKE_MS, lambda: action(replica))
    try:
        simulation.run_until(STRIKE_MS + 3_000)
    except Exception:  # Whatever the model makes of it: the checker must have seen it by then.
        assert simulation.findings
    return {finding.code for finding in simulation.findings}


def begin_behind_the_end(replica: ReplicaLog) -> None:
    replica.log.log_start_offset = Offset(replica.log.log_end_offset + 3)
    replica._changed()


def know_a_wrong_epoch(replica: ReplicaLog) -> None:
    replica.log.assign_epoch_start(LeaderEpoch(7), Offset(replica.log.log_end_offset - 2))
    replica._changed()


def flip_a_bit(replica: ReplicaLog) -> None:
    """Change a value in a segment that is compacted, and say that it was cleaned."""
    path = f"{replica.log.directory}/{replica.log.segments[0].base_offset:020d}.log"
    file = replica.log.storage.open(path)
    position = replica.log.segments[0].size_bytes - 3
    file.write_at(position, bytes([file.read_at(position, 1)[0] ^ 1]))
    replica.note_cleaned()


def test_a_log_that_begins_behind_what_is_committed_is_found() -> None:
    assert "K1" in broken_by(begin_behind_the_end)


def test_a_log_that_is_cut_at_its_start_for_no_reason_is_found() -> None:
    assert broken_by(lambda replica: replica.raise_start(Offset(2))) == {"K2"}


def test_a_wrong_epoch_in_a_log_that_is_kept_is_found() -> None:
    assert "I12" in broken_by(know_a_wrong_epoch)


def test_a_record_that_compaction_has_changed_is_found() -> None:
    assert "K6" in broken_by(flip_a_bit, attrs.evolve(COMPACT, check_ms=DurationMs(60_000)))


def faulty(retention: Retention, *plan: Fault, delay_ms_max: int = 4, seed: int = QUIET.seed) -> set[str]:
    """The codes of what a run under these faults breaks."""
    options: Options = attrs.evolve(QUIET, seed=seed, acks=(-1, 1), network=NetworkOptions(delay_ms_max=delay_ms_max))
    return {finding.code for finding in run(with_retention(options, retention), plan).findings}


def ordered(at_ms: int) -> Fault:
    """An order to delete all that is committed of partition 0."""
    return Fault(TimeMs(at_ms), FaultKind.DELETE_RECORDS, 0)


def test_a_follower_that_does_not_take_its_leaders_start_is_found(monkeypatch: Patch) -> None:
    assert faulty(DELETE, ordered(9_000)) == set()
    raise_start = ReplicaLog.raise_start

    def too_low(self: ReplicaLog, offset: Offset) -> None:
        raise_start(self, Offset(offset - 1))

    monkeypatch.setattr(ReplicaLog, "raise_start", too_low)
    assert "K3" in faulty(DELETE, ordered(9_000))


def test_an_answer_to_an_order_that_does_not_hold_everywhere_is_found(monkeypatch: Patch) -> None:
    assert faulty(DELETE, ordered(9_000), delay_ms_max=300) == set()
    monkeypatch.setattr(replication.retention.log_manager, "low_watermark", lambda *_: Offset(1_000_000))
    assert "K4" in faulty(DELETE, ordered(9_000), delay_ms_max=300)


ALONE: Final = Fault(TimeMs(6_000), FaultKind.CUT_PEERS, 0, DurationMs(20_000))


def test_compaction_of_what_is_not_committed_is_found(monkeypatch: Patch) -> None:
    # KAFKA-13194: a leader on its own compacted what was committed by what was not.
    assert faulty(COMPACT, ALONE) == set()

    def first_uncleanable(partition_log: Any, *_: Any) -> Offset:
        base_offset: Offset = partition_log.active_segment.base_offset
        return base_offset

    monkeypatch.setattr(log.compaction.selection, "_first_uncleanable_offset", first_uncleanable)
    assert "K5" in faulty(COMPACT, ALONE)


def test_tombstones_that_go_too_early_are_found(monkeypatch: Patch) -> None:
    retention = attrs.evolve(COMPACT, delete_retention_ms=DurationMs(120_000), tombstones_one_in=2)
    # Seeds 2, 3 and 6 show a tombstone that goes too early; seeds 1, 4 and 5 break nothing in 30 s.
    assert faulty(retention, seed=2) == set()
    log_config = Retention.log_config

    def at_once(self: Retention, config: LogConfig) -> LogConfig:
        return attrs.evolve(log_config(self, config), delete_retention_ms=DurationMs(0))

    monkeypatch.setattr(Retention, "log_config", at_once)
    assert "K7" in faulty(retention, seed=2)


def truth(*keys: bytes) -> dict[int, ReferenceLog]:
    """A partition in which value n stands at offset n, under the nth key."""
    made = RetainedReferenceLog(0)
    made.committed = [Entry(0, value, 9, value) for value in range(len(keys))]
    for value, key in enumerate(keys):
        made.known[value] = Held(value, made.committed[value], key, False, TimeMs(0))
    made.note_committed()
    return {0: made}


def seen(offset: int, *, is_reset: bool = False) -> ConsumedRecord:
    return ConsumedRecord(7, 0, Offset(offset), offset, TimeMs(0), is_reset)


def test_a_key_that_goes_back_is_found() -> None:
    references = truth(b"a", b"b", b"a")
    assert check_keys([seen(0), seen(2), seen(1)], references, TimeMs(0)) == []
    assert [finding.code for finding in check_keys([seen(2), seen(0)], references, TimeMs(0))] == ["K8"]
    assert check_keys([seen(2), seen(0, is_reset=True)], references, TimeMs(0)) == []


def codes(consumed_records: list[ConsumedRecord], references: dict[int, ReferenceLog]) -> set[str]:
    found = check_history(
        [],
        consumed_records,
        references,
        TimeMs(0),
        may_skip=lambda partition, offset: may_skip(references, partition, offset),
        is_expired=lambda partition, offset: is_expired(references, partition, offset),
    )
    return {finding.code for finding in found}


def test_a_consumer_may_skip_what_was_superseded_and_nothing_else() -> None:
    assert codes([seen(1), seen(2)], truth(b"a", b"b", b"a")) == set()
    assert codes([seen(2)], truth(b"a", b"b", b"a")) == {"H3"}


def test_every_invariant_of_upkeep_has_a_row() -> None:
    assert {code for code in INVARIANTS if code.startswith("K")} == {f"K{number}" for number in range(1, 10)}


@pytest.mark.parametrize(
    ("key_of_first", "epochs", "excused"),
    [(b"k", (1, 2), True), (b"other", (1, 2), False), (b"k", (2, 2), False), (b"k", (1, 1), False)],
)
def test_an_older_record_is_excused_only_in_the_place_of_a_superseded_one_of_a_later_epoch(
    key_of_first: bytes, epochs: tuple[int, int], excused: bool
) -> None:
    """Offset 0 is the first of epoch 2, and offset 1 supersedes it if both have one key."""
    reference = RetainedReferenceLog(0)
    held, written = epochs
    reference.committed = [Entry(written, 10), Entry(2, 11), Entry(2, 12)]
    for offset, key in enumerate((key_of_first, b"k", b"z")):
        entry = reference.committed[offset]
        reference.known[entry.value] = Held(offset, entry, key, False, TimeMs(0))
    assert reference.skips_epoch_start(1, written, held) == excused


# The cleaner's own weakness: see `check_gaps`.


class CleanedLog:
    """Stand for a log of four offsets from 0 on, as far as `check_gaps` looks at it."""

    cleaning_count = 0
    log_start_offset, log_end_offset = Offset(0), Offset(4)

    @property
    def log(self) -> CleanedLog:
        return self


def held(offset: int, key: str, epoch: int, value: int) -> Held:
    return Held(offset, Entry(epoch, value), key.encode(), False, TimeMs(0))


COMMITTED: Final = (held(0, "a", 1, 10), held(1, "b", 2, 11), held(2, "c", 2, 12), held(3, "b", 2, 13))
"""Compaction took offset 1 at the leader, which dates epoch 2 from offset 2 on."""


@pytest.mark.parametrize(
    ("kept", "missing", "codes"),
    [
        (held(1, "a", 1, 99), 0, []),  # An uncommitted record of the epoch before superseded it.
        (held(1, "x", 1, 99), 0, ["K5"]),  # One of another key did not.
        (held(1, "a", 2, 99), 0, ["K5"]),  # One of the same epoch diverges, and had to be cut.
        (COMMITTED[1], 0, ["K5"]),
        (held(1, "a", 1, 99), 2, ["K5"]),
    ],
)
def test_a_last_record_may_only_lack_where_an_uncommitted_one_of_its_key_took_a_compacted_place(
    kept: Held, missing: int, codes: list[str]
) -> None:
    truth = RetainedReferenceLog(0)
    truth.committed = [each.entry for each in COMMITTED]
    truth.known = {each.entry.value: each for each in (*COMMITTED, kept)}
    truth.note_committed()
    log: Any = CleanedLog()
    observed = RetainedObservedLog(truth, BatchReader(), log, (BrokerId(0), 0), None)
    observed.entries = [truth.committed[0], kept.entry, *truth.committed[2:]]
    observed.gaps, observed.new_gaps = {missing}, [missing]
    assert [code for code, _ in check_gaps(truth, observed)] == codes
