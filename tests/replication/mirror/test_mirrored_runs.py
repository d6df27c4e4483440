"""Mirrored runs: the promises hold with and without failures, and breaking a rule breaks a promise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import attrs
import pytest

from broker.cli import run
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.mirror import MirrorOptions, SyncStore, run_mirror, with_failures, without_failures
from replication.mirror.checks import PROMISES, Copy, Failover, check_copy, check_failover, check_groups
from replication.mirror.cli import mirror
from replication.mirror.process import MirrorProcess
from replication.mirror.records import Checkpoint, OffsetSync
from replication.simulation.fault import Fault
from replication.simulation.options import FaultKind

PARTITION = TopicPartition("orders", PartitionId(0))
CALM = without_failures(1, DurationMs(12_000))


def dying(options: MirrorOptions, at_ms: int, for_ms: int, heal_ms_max: int) -> MirrorOptions:
    """Return options with one death of the mirror, and with a bound on the time to heal."""
    source, target = (
        attrs.evolve(each, heal_ms_max=DurationMs(heal_ms_max)) for each in (options.source, options.target)
    )
    death = Fault(TimeMs(at_ms), FaultKind.KILL, 0, DurationMs(for_ms))
    return attrs.evolve(options, source=source, target=target, deaths=(death,))


DYING = dying(CALM, 7_000, 2_000, CALM.source.heal_ms_max)
SLOW_GROUP = attrs.evolve(
    CALM, commit_group_ms=DurationMs(7_000), settings=attrs.evolve(CALM.settings, offset_lag_max=0)
)


@pytest.mark.parametrize(("options", "has_duplicates"), [(CALM, False), (DYING, True), (SLOW_GROUP, False)])
def test_every_record_is_copied_and_only_failures_copy_twice(options: MirrorOptions, has_duplicates: bool) -> None:
    outcome = run_mirror(options)
    assert (outcome.findings, outcome.target_topics) == ((), ("source.orders",))
    assert any(copy.duplicate_count for copy in outcome.copies) is has_duplicates
    assert sum(len(copy.target) for copy in outcome.copies) > 100


@pytest.mark.parametrize("seed", [2, pytest.param(9, marks=pytest.mark.deep), pytest.param(13, marks=pytest.mark.deep)])
def test_under_failures_no_group_misses_a_record_and_one_between_checkpoints_reads_again(seed: int) -> None:
    options = with_failures(seed, DurationMs(30_000))
    outcome = run_mirror(options)
    assert outcome.findings == ()
    between = [each for each in outcome.failovers if each.at_ms == options.failover_at_ms]
    assert sum(each.read_again_count for each in between) > 0
    assert sum(each.missed_count for each in outcome.failovers) == 0


@pytest.mark.deep
def test_the_same_options_give_the_same_history_in_another_process() -> None:
    program = (
        "from broker.units import DurationMs\n"
        "from replication.mirror import run_mirror, with_failures\n"
        "print(run_mirror(with_failures(3, DurationMs(8_000))).digest)"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == run_mirror(with_failures(3, DurationMs(8_000))).digest


# Each promise is broken by a mirror that leaves out a rule.


def forgetful_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    """It skips what was written while it was down."""
    real = MirrorProcess._refresh

    def refresh(self: MirrorProcess) -> None:
        self._committed = {partition: Offset(offset + 50) for partition, offset in self._committed.items()}
        real(self)

    monkeypatch.setattr(MirrorProcess, "_refresh", refresh)


def impatient_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the last sync, also for a group that is not there yet."""

    def translate(self: SyncStore, partition: TopicPartition, upstream: Offset) -> Offset | None:
        kept = self.syncs_of(partition)
        return Offset(kept[0].downstream + 1) if kept else None

    monkeypatch.setattr(SyncStore, "translate", translate)


def syncs_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the last record of a batch for the first."""
    real = MirrorProcess._on_copied

    def on_copied(self: MirrorProcess, partition: TopicPartition, offsets: tuple[Offset, ...], first: Offset) -> None:
        real(self, partition, offsets[::-1], first)

    monkeypatch.setattr(MirrorProcess, "_on_copied", on_copied)


@pytest.mark.parametrize(
    ("leave_out", "options", "code"),
    [
        (forgetful_resume, DYING, "MM1"),
        (impatient_translation, SLOW_GROUP, "MM6"),
        (syncs_by_batch, SLOW_GROUP, "MM5"),
    ],
)
def test_a_mirror_without_a_rule_breaks_a_promise(
    leave_out: Callable[[pytest.MonkeyPatch], None],
    options: MirrorOptions,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_out(monkeypatch)
    source = attrs.evolve(options.source, heal_ms_max=DurationMs(8_000))
    target = attrs.evolve(options.target, heal_ms_max=DurationMs(8_000))
    options = attrs.evolve(options, source=source, target=target)
    assert code in {finding.code for finding in run_mirror(options).findings}


# The checks themselves, on copies made by hand.


def copy(source: str, target: str) -> Copy:
    return Copy(PARTITION, tuple(map(str.encode, source)), tuple(map(str.encode, target)))


@pytest.mark.parametrize(
    ("source", "target", "codes"),
    [
        ("abc", "abc", []),
        ("abc", "abbc", []),
        ("abc", "ababc", []),
        ("abb", "abb", []),
        ("abc", "ab", ["MM1"]),
        ("abc", "acb", ["MM2"]),
        ("abc", "abxc", ["MM3"]),
        ("abc", "bc", ["MM1"]),
    ],
)
def test_a_copy_is_complete_in_order_and_nothing_else(source: str, target: str, codes: list[str]) -> None:
    assert [finding.code for finding in check_copy(copy(source, target), (), is_once=False)] == codes


def test_without_a_failure_nothing_is_copied_twice_but_what_the_source_has_twice() -> None:
    assert [finding.code for finding in check_copy(copy("ab", "aab"), (), is_once=True)] == ["MM4"]
    assert list(check_copy(copy("aab", "aab"), (), is_once=True)) == []


@pytest.mark.parametrize(
    ("upstream", "downstream", "is_pair"),
    [(1, 1, True), (1, 2, True), (2, 3, True), (2, 2, False), (3, 3, False), (2, 4, False)],
)
def test_a_sync_names_a_record_and_its_copy(upstream: int, downstream: int, is_pair: bool) -> None:
    pair = OffsetSync(PARTITION, Offset(upstream), Offset(downstream))
    codes = [finding.code for finding in check_copy(copy("abc", "abbc"), [pair], is_once=False)]
    assert codes == ([] if is_pair else ["MM5"])


def failover(upstream: int, downstream: int, *, is_synced: bool = True) -> Failover:
    return Failover(
        at_ms=TimeMs(9),
        partition=PARTITION,
        upstream=Offset(upstream),
        downstream=Offset(downstream),
        source_end=Offset(4),
        target_end=Offset(3),
        is_synced=is_synced,
    )


def test_a_failover_is_counted_in_records_missed_read_again_and_not_copied_yet() -> None:
    both = copy("abcd", "abbcd")
    found = [failover(2, at).counted(both) for at in range(6)]
    assert [each.missed_count for each in found[2:]] == [0, 0, 1, 2]
    assert [each.read_again_count for each in found[:4]] == [3, 2, 1, 0]
    assert {each.behind_count for each in found} == {2}
    points = [Checkpoint("g", PARTITION, Offset(2), Offset(at)) for at in (3, 4)]
    assert [finding.code for finding in check_groups({PARTITION: both}, points)] == ["MM6"]


@pytest.mark.parametrize(
    ("is_at_rest", "is_synced", "missed_count", "again", "codes"),
    [
        (True, True, 0, 12, []),
        (True, True, 0, 13, ["MM7"]),
        (True, True, 1, 0, ["MM6"]),
        (False, True, 0, 99, []),
        (False, True, 2, 99, ["MM6"]),
        # Syncs in memory die with the process: without a record since its start the last sync, at 10, is the bound.
        (True, False, 0, 42, []),
        (True, False, 0, 43, ["MM7"]),
    ],
)
def test_a_failover_misses_nothing_and_at_rest_reads_little_again(
    is_at_rest: bool, is_synced: bool, missed_count: int, again: int, codes: list[str]
) -> None:
    """Two records are there twice; the group stands at 50."""
    group = attrs.evolve(failover(50, 11, is_synced=is_synced), missed_count=missed_count, read_again_count=again)
    last = OffsetSync(PARTITION, Offset(10), Offset(10))
    found = check_failover(group, copy("abcd", "ababcd"), 10 if is_at_rest else None, last)
    assert [finding.code for finding in found] == codes


# Whole runs that cannot end, and the command.


def test_a_run_that_cannot_end_says_what_is_missing() -> None:
    options = dying(without_failures(1, DurationMs(4_000)), 3_000, 60_000, 1)
    assert "L" in [finding.code for finding in run_mirror(options).findings]


def test_the_command_prints_seed_and_failures_first_and_the_result_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "mirror", ["--seed", "4", "--minutes", "0.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("seed 4: source is copied to target; offset.lag.max 100, ")
    assert "the mirror copies orders-0 to source.orders-0 from offset 0 on" in "\n".join(lines)
    assert lines[-1] == "nothing is broken"


def test_a_broken_promise_has_status_one_and_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    impatient_translation(monkeypatch)
    options = dying(SLOW_GROUP, 12_100, 500, SLOW_GROUP.source.heal_ms_max)
    monkeypatch.setattr("replication.mirror.cli.with_failures", lambda seed, duration_ms: options)
    assert run(mirror, "mirror", ["--seed", "4", "--minutes", "0.2"]) == 1
    *_, broken, again = capsys.readouterr().out.splitlines()
    assert broken.startswith("BROKEN: MM")
    assert again == "again: brokerside mirror --minutes 0.2 --seed 4"
    assert set(PROMISES) == {f"MM{number}" for number in range(1, 8)}
