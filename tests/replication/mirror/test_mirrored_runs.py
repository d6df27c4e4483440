"""Mirrored runs: the promises hold with and without failures, and breaking a rule breaks a promise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import attrs
import pytest

from broker.cli import run
from broker.errors import UsageError
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.mirror import (
    MirrorFault,
    MirrorOptions,
    MirrorRun,
    OffsetSync,
    SyncStore,
    partition_clients,
    process,
    run_mirror,
    with_failures,
    without_failures,
)
from replication.mirror.checks import (
    PROMISES,
    Copy,
    Failover,
    check_checkpoints,
    check_copy,
    check_failovers,
    check_syncs,
    missed,
    read_again,
)
from replication.mirror.cli import mirror
from replication.mirror.policy import IdentityPolicy
from replication.mirror.records import Checkpoint

PARTITION = TopicPartition("orders", PartitionId(0))


CALM = without_failures(1, DurationMs(20_000))
DYING = attrs.evolve(CALM, deaths=(MirrorFault(TimeMs(10_000), DurationMs(4_000)),))
SLOW_GROUP = attrs.evolve(
    CALM, commit_group_ms=DurationMs(7_000), settings=attrs.evolve(CALM.settings, offset_lag_max=0)
)
IDENTITY = attrs.evolve(CALM, settings=attrs.evolve(CALM.settings, policy=IdentityPolicy()))


@pytest.mark.parametrize(
    ("options", "has_duplicates", "topics"),
    [
        (CALM, False, ("source.heartbeats", "source.orders")),
        (DYING, True, ("source.heartbeats", "source.orders")),
        (SLOW_GROUP, False, ("source.heartbeats", "source.orders")),
        (IDENTITY, False, ("orders", "source.heartbeats")),
    ],
)
def test_every_record_is_copied_and_only_failures_copy_twice(
    options: MirrorOptions, has_duplicates: bool, topics: tuple[str, ...]
) -> None:
    outcome = run_mirror(options)
    assert (outcome.findings, outcome.target_topics) == ((), topics)
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
    real = process.MirrorProcess._copy

    def copy(self: process.MirrorProcess, partition: TopicPartition) -> None:
        if partition in self._committed:
            self._committed[partition] = Offset(self._committed[partition] + 50)
        real(self, partition)

    monkeypatch.setattr(process.MirrorProcess, "_copy", copy)


def commits_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes what it has read for copied."""
    real = partition_clients.PartitionWriter.write

    def write(self: partition_clients.PartitionWriter[object], batch: bytes, token: object) -> None:
        real(self, batch, token)
        if isinstance(token, tuple) and token:
            self._on_written(token, Offset(0))

    monkeypatch.setattr(partition_clients.PartitionWriter, "write", write)


def impatient_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the last sync, also for a group that is not there yet."""

    def translate(self: SyncStore, partition: TopicPartition, upstream: Offset) -> Offset | None:
        kept = self.syncs_of(partition)
        return Offset(kept[0].downstream + 1) if kept else None

    monkeypatch.setattr(SyncStore, "translate", translate)


def syncs_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the last record of a batch for the first."""
    real = process.MirrorProcess._on_copied

    def on_copied(
        self: process.MirrorProcess, partition: TopicPartition, offsets: tuple[Offset, ...], first: Offset
    ) -> None:
        real(self, partition, offsets[::-1], first)

    monkeypatch.setattr(process.MirrorProcess, "_on_copied", on_copied)


@pytest.mark.parametrize(
    ("leave_out", "options", "code"),
    [
        (forgetful_resume, DYING, "MM1"),
        (commits_what_it_reads, SLOW_GROUP, "MM5"),
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
    assert [finding.code for finding in check_copy(copy(source, target), is_once=False)] == codes


def test_without_a_failure_there_is_one_copy() -> None:
    assert [finding.code for finding in check_copy(copy("ab", "aab"), is_once=True)] == ["MM4"]
    assert list(check_copy(copy("aab", "aab"), is_once=True)) == []


def test_a_sync_names_a_record_and_its_copy() -> None:
    def codes(upstream: int, downstream: int) -> list[str]:
        pair = OffsetSync(PARTITION, Offset(upstream), Offset(downstream))
        return [finding.code for finding in check_syncs(copy("abc", "abbc"), [pair])]

    assert (codes(1, 1), codes(1, 2), codes(2, 3)) == ([], [], [])
    assert (codes(2, 2), codes(3, 3), codes(2, 4)) == (["MM5"], ["MM5"], ["MM5"])


def test_a_failover_is_counted_in_records_missed_and_read_again() -> None:
    both = copy("abcd", "abbcd")
    assert [missed(both, Offset(2), Offset(at)) for at in (2, 3, 4, 5)] == [0, 0, 1, 2]
    assert [read_again(both, Offset(2), Offset(at)) for at in (0, 1, 2, 3)] == [3, 2, 1, 0]
    points = [Checkpoint("g", PARTITION, Offset(2), Offset(at)) for at in (3, 4)]
    assert [finding.code for finding in check_checkpoints({PARTITION: both}, points)] == ["MM6"]


@pytest.mark.parametrize(
    ("at_ms", "missed_count", "again", "codes"),
    [(9, 0, 12, []), (9, 0, 13, ["MM7"]), (9, 1, 0, ["MM6"]), (5, 0, 99, []), (5, 2, 99, ["MM6"])],
)
def test_a_failover_misses_nothing_and_at_rest_reads_little_again(
    at_ms: int, missed_count: int, again: int, codes: list[str]
) -> None:
    def failover(when: int, missing: int, twice: int) -> Failover:
        return Failover(TimeMs(when), PARTITION, Offset(4), Offset(1), missing, twice, 0)

    # Two records are there twice; the last failover is the one at rest.
    known = {PARTITION: copy("abcd", "ababcd")}
    told = [failover(at_ms, missed_count, again), failover(9, 0, 0)]
    assert [finding.code for finding in check_failovers(told, known, lag_max=10)] == codes


@pytest.mark.parametrize(("again", "is_synced", "codes"), [(13, True, ["MM7"]), (42, False, []), (43, False, ["MM7"])])
def test_syncs_in_memory_die_with_the_process(again: int, is_synced: bool, codes: list[str]) -> None:
    """The group stands at 50 and the last sync at 10: without a record since the start, that is where it goes on."""
    known = {PARTITION: copy("abcd", "ababcd")}
    told = [Failover(TimeMs(9), PARTITION, Offset(50), Offset(11), 0, again, 0, is_synced=is_synced)]
    last = {PARTITION: OffsetSync(PARTITION, Offset(10), Offset(10))}
    assert [finding.code for finding in check_failovers(told, known, 10, last)] == codes


# Options and the command.


def test_impossible_options_are_refused_in_one_sentence() -> None:
    options = without_failures(1, DurationMs(60_000))
    with pytest.raises(UsageError, match=r"^both clusters are called 'source'; they need names of their own$"):
        attrs.evolve(options, settings=attrs.evolve(options.settings, target="source"))
    deaths = (MirrorFault(TimeMs(1_000), DurationMs(500)), MirrorFault(TimeMs(1_400), DurationMs(5)))
    with pytest.raises(UsageError, match=r"^the mirror dies at 1400 ms while it is down since 1000 ms$"):
        attrs.evolve(options, deaths=deaths)
    shorter = attrs.evolve(options.target, duration_ms=DurationMs(5))
    with pytest.raises(UsageError, match=r"^the source runs for 60000 ms and the target for 5; both have one clock$"):
        attrs.evolve(options, target=shorter)


def test_a_run_that_cannot_end_says_what_is_missing() -> None:
    options = without_failures(1, DurationMs(4_000))
    short = attrs.evolve(
        options,
        source=attrs.evolve(options.source, heal_ms_max=DurationMs(1)),
        target=attrs.evolve(options.target, heal_ms_max=DurationMs(1)),
        deaths=(MirrorFault(TimeMs(3_000), DurationMs(60_000)),),
    )
    codes = [finding.code for finding in MirrorRun(short).finish().findings]
    assert "L" in codes


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
    options = attrs.evolve(SLOW_GROUP, deaths=DYING.deaths)
    monkeypatch.setattr("replication.mirror.cli.with_failures", lambda seed, duration_ms: options)
    assert run(mirror, "mirror", ["--seed", "4", "--minutes", "0.5"]) == 1
    *_, broken, again = capsys.readouterr().out.splitlines()
    assert broken.startswith("BROKEN: MM")
    assert again == "again: brokerside mirror --minutes 0.5 --seed 4"
    assert set(PROMISES) == {f"MM{number}" for number in range(1, 8)}
