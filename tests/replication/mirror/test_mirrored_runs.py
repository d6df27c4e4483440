"""Mirrored runs: scenarios come out as told, the promises hold under faults, and breaking a rule breaks a promise."""

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
from replication.mirror import partition_clients, process
from replication.mirror.checks import PROMISES, Copy, check_checkpoints, check_copy, check_syncs, missed, read_again
from replication.mirror.cli import mirror
from replication.mirror.options import MirrorFault, MirrorOptions, quiet_mirror, swarm_mirror
from replication.mirror.outcome import Failover, check_failovers
from replication.mirror.records import Checkpoint, OffsetSync
from replication.mirror.run import MirrorRun, run_mirror
from replication.mirror.scenarios import SCENARIOS, MirrorScenario, differences, find_scenario
from replication.mirror.sync_store import SyncStore

MINUTE: DurationMs = DurationMs(60_000)
PARTITION = TopicPartition("orders", PartitionId(0))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_comes_out_as_expected(scenario: MirrorScenario) -> None:
    outcome = run_mirror(scenario.options)
    assert differences(scenario, outcome) == ()
    assert len(scenario.how) > 60


# Seed 13: an unclean election of the source, after which offsets are used twice.
@pytest.mark.parametrize("seed", [2, 9, 13])
def test_under_faults_nothing_is_lost_and_no_group_misses_a_record(seed: int) -> None:
    outcome = run_mirror(swarm_mirror(seed, MINUTE))
    assert outcome.findings == ()
    assert sum(len(copy.target) for copy in outcome.copies) > 0
    assert outcome.failovers


def test_the_same_options_give_the_same_history_in_another_process() -> None:
    options = swarm_mirror(3, DurationMs(8_000))
    program = (
        "from broker.units import DurationMs\n"
        "from replication.mirror.options import swarm_mirror\n"
        "from replication.mirror.run import run_mirror\n"
        "print(run_mirror(swarm_mirror(3, DurationMs(8_000))).digest)"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == run_mirror(options).digest


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


DYING = find_scenario("M02").options
SLOW_GROUP = attrs.evolve(
    find_scenario("M01").options,
    commit_group_ms=DurationMs(7_000),
    settings=attrs.evolve(find_scenario("M01").options.settings, offset_lag_max=0),
)


def test_a_group_that_is_slow_misses_nothing() -> None:
    assert run_mirror(SLOW_GROUP).findings == ()


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


def copy(source: str, target: str, *, is_sound: bool = True) -> Copy:
    return Copy(PARTITION, tuple(map(str.encode, source)), tuple(map(str.encode, target)), is_sound)


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
    assert list(check_checkpoints({PARTITION: copy("abcd", "abbcd", is_sound=False)}, points)) == []


@pytest.mark.parametrize(
    ("at_ms", "missed_count", "again", "codes"),
    [(9, 0, 12, []), (9, 0, 13, ["MM7"]), (9, 1, 0, ["MM6"]), (5, 0, 99, []), (5, 2, 99, ["MM6"])],
)
def test_a_failover_misses_nothing_and_at_rest_reads_little_again(
    at_ms: int, missed_count: int, again: int, codes: list[str]
) -> None:
    def failover(when: int, missing: int, twice: int) -> Failover:
        return Failover(TimeMs(when), PARTITION, Offset(4), Offset(1), missing, twice, 0, is_sound=True)

    # Two records are there twice; the last failover is the one at rest.
    known = {PARTITION: copy("abcd", "ababcd")}
    told = [failover(at_ms, missed_count, again), failover(9, 0, 0)]
    assert [finding.code for finding in check_failovers(told, known, lag_max=10)] == codes


@pytest.mark.parametrize(("again", "is_synced", "codes"), [(13, True, ["MM7"]), (42, False, []), (43, False, ["MM7"])])
def test_syncs_in_memory_die_with_the_process(again: int, is_synced: bool, codes: list[str]) -> None:
    """The group stands at 50 and the last sync at 10: without a record since the start, that is where it goes on."""
    known = {PARTITION: copy("abcd", "ababcd")}
    told = [Failover(TimeMs(9), PARTITION, Offset(50), Offset(11), 0, again, 0, is_sound=True, is_synced=is_synced)]
    last = {PARTITION: OffsetSync(PARTITION, Offset(10), Offset(10))}
    assert [finding.code for finding in check_failovers(told, known, 10, last)] == codes


# Options and the command.


def test_impossible_options_are_refused_in_one_sentence() -> None:
    options = quiet_mirror(1, MINUTE)
    with pytest.raises(UsageError, match=r"^both clusters are called 'source'; they need names of their own$"):
        attrs.evolve(options, settings=attrs.evolve(options.settings, target="source"))
    deaths = (MirrorFault(TimeMs(1_000), DurationMs(500)), MirrorFault(TimeMs(1_400), DurationMs(5)))
    with pytest.raises(UsageError, match=r"^the mirror dies at 1400 ms while it is down since 1000 ms$"):
        attrs.evolve(options, deaths=deaths)
    shorter = attrs.evolve(options.target, duration_ms=DurationMs(5))
    with pytest.raises(UsageError, match=r"^the source runs for 60000 ms and the target for 5; both have one clock$"):
        attrs.evolve(options, target=shorter)


def test_a_run_that_cannot_end_says_what_is_missing() -> None:
    options = quiet_mirror(1, DurationMs(4_000))
    short = attrs.evolve(
        options,
        source=attrs.evolve(options.source, heal_ms_max=DurationMs(1)),
        target=attrs.evolve(options.target, heal_ms_max=DurationMs(1)),
        deaths=(MirrorFault(TimeMs(3_000), DurationMs(60_000)),),
    )
    codes = [finding.code for finding in MirrorRun(short).finish().findings]
    assert "L" in codes


def test_the_command_tells_seed_and_options_first_and_the_verdict_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "mirror", ["--quiet", "--seed", "4", "--minutes", "0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed 4: source is copied to target"
    assert "the mirror copies orders-0 to source.orders-0 from offset 0 on" in "\n".join(lines)
    assert lines[-1] == "nothing is broken"


def test_many_seeds_are_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "mirror", ["--quiet", "--seeds", "2", "--minutes", "0.1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 runs, ")
    assert out.endswith(" 0 of them again, 0 broken\n")


def test_two_shapes_of_a_run_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "mirror", ["--quiet", "--swarm", "--minutes", "0.1"]) == 2
    assert capsys.readouterr() == ("", "mirror: --swarm and --quiet are different runs; give one of them\n")


def test_stories_are_listed_and_told_and_others_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mirror, "mirror", ["--list"]) == 0
    assert capsys.readouterr().out.startswith("M01  Copy without faults\nM02  ")
    assert run(mirror, "mirror", ["--scenario", "M04"]) == 0
    assert capsys.readouterr().out.endswith("nothing is broken\nas expected\n")
    assert run(mirror, "mirror", ["--scenario", "m08"]) == 2
    near = "there is no scenario 'm08'; the nearest is 'M08'; `brokerside mirror --list` prints all names"
    assert capsys.readouterr() == ("", f"mirror: {near}\n")
    assert run(mirror, "mirror", ["--scenario", "M99\x1b"]) == 2
    assert capsys.readouterr().err.endswith("; `brokerside mirror --list` prints all names\n")


def test_a_scenario_that_differs_says_in_what() -> None:
    scenario = find_scenario("M01")
    outcome = run_mirror(find_scenario("M02").options)
    (what,) = differences(scenario, outcome)
    assert what.endswith(" records are on the target twice")
    assert set(PROMISES) == {f"MM{number}" for number in range(1, 8)}
