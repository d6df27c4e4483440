"""Whole runs of models that are broken in one place: what neither a rule turned off nor `test_checkers` breaks.

The model is broken by putting another function or method in the place of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

import replication.roles.broker_role
import replication.roles.controller
import replication.roles.follower
import replication.roles.leader
import replication.rules.controller_events
import replication.rules.fetch
import replication.rules.partition_change
import replication.rules.reassign
import replication.simulation.node
from broker.cli import run as run_command
from broker.error_codes import ErrorCode
from broker.ids import BrokerId, Offset
from broker.releases import NEWEST
from broker.units import DurationMs, TimeMs
from replication.checkers import INVARIANTS
from replication.cli.simulate import simulate
from replication.groups import GroupsExtension, with_groups
from replication.roles.controller import ControllerRole
from replication.roles.leader import LeaderRole
from replication.roles.messages import CreateTopic, DeleteTopic, SessionsDue
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof
from replication.rules.partition import PartitionState
from replication.scenarios.extension import ScenarioExtension
from replication.scenarios.operations import AskController
from replication.simulation import (
    Fault,
    FaultKind,
    NetworkOptions,
    Options,
    Simulation,
    quiet,
    run,
    swarm,
    varied,
)
from replication.simulation.fault_injection import FaultInjector
from replication.simulation.node import Node
from replication.simulation.promptness import LagWatch, WriteWatch
from tests.replication.scenarios.test_scenarios import removed_and_added_again

pytestmark = pytest.mark.deep

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]

QUIET: Final = quiet(1, DurationMs(20_000))
FAILOVER: Final = (Fault(TimeMs(5_000), FaultKind.KILL, 0, DurationMs(3_000)),)
FOLLOWERS_DIE: Final = tuple(Fault(TimeMs(5_000), FaultKind.KILL, broker, DurationMs(20_000)) for broker in (1, 2))
FAR_ALONE: Final = attrs.evolve(
    QUIET,
    network=NetworkOptions(delay_ms_max=400),
    duration_ms=DurationMs(40_000),
    produce_ms=DurationMs(50),
    producers=4,
)
TWO_DIE: Final = tuple(Fault(TimeMs(5_000), FaultKind.KILL, broker, DurationMs(20_000)) for broker in (0, 1))
DEAD_FOLLOWER: Final = (Fault(TimeMs(5_000), FaultKind.KILL, 2, DurationMs(3_000)),)
LEADER: Final = replication.roles.leader
BROKER: Final = replication.roles.broker_role
CONTROLLER: Final = replication.roles.controller


def around(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Put `change(original, *arguments)` in the place of a function."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: change(original, *given, **named))


def every_stop_is_unclean(patch: Patch) -> None:
    around(patch, CONTROLLER, "is_clean_registration", lambda _original, *_given: False)


def clean_stops_leave_no_file(patch: Patch) -> None:
    around(patch, replication.simulation.node, "proof_at_stop", lambda _original, *_given, **_named: StopProof())


def nobody_is_eligible(patch: Patch) -> None:
    around(patch, replication.rules.partition_change, "next_elr", lambda _original, *_given: ())


def the_last_member_is_not_eligible(patch: Patch) -> None:
    def following(original: Any, partition: PartitionState, isr: Any, *given: Any) -> Any:
        return original(partition, isr, *given) if isr else partition.elr

    around(patch, replication.rules.partition_change, "next_elr", following)


def cancelled_moves_keep(*fields: str) -> Break:
    """Return a break: a cancellation leaves these fields of a partition as the move has made them."""

    def break_it(patch: Patch) -> None:
        def cancelled(original: Any, state: PartitionState) -> Any:
            return attrs.evolve(original(state), **{field: getattr(state, field) for field in fields})

        around(patch, CONTROLLER, "cancelled", cancelled)

    break_it.__name__ = f"cancelled_moves_keep_{'_and_'.join(fields)}"
    return break_it


def cancellations_are_forgotten(patch: Patch) -> None:
    def reassign(original: Any, self: ControllerRole, order: Any) -> ErrorCode:
        return original(self, order) if order.replicas else ErrorCode.NONE

    around(patch, ControllerRole, "_reassign", reassign)


def one_of_the_added_is_enough(patch: Patch) -> None:
    def needed(original: Any, phase: Any, rules: Any) -> Any:
        return tuple(broker for broker in original(phase, rules) if broker in phase.isr)[:1] or phase.adding

    around(patch, replication.rules.reassign, "_needed_in_isr", needed)


def moves_leave_the_removed(patch: Patch) -> None:
    def completed(original: Any, phase: Any, *given: Any) -> Any:
        ended = original(phase, *given)
        return ended and attrs.evolve(ended, replicas=phase.replicas)

    around(patch, replication.rules.partition_change, "completed", completed)


def a_leader_counts_who_is_added(patch: Patch) -> None:
    def lead(original: Any, known: Any, news: PartitionState, *given: Any) -> Any:
        leading = original(known, news, *given)
        return attrs.evolve(leading, state=attrs.evolve(leading.state, isr=(*news.isr, *news.adding)))

    around(patch, BROKER, "become_leader", lead)


def the_silent_are_not_waited_for(patch: Patch) -> None:
    def high(original: Any, leader: Any, state: Any, moment: Any, *given: Any) -> Any:
        heard = tuple(each for each in leader.followers if moment.now_ms - each.fetched_at_ms < 2_000)
        return original(attrs.evolve(leader, followers=heard), state, moment, *given)

    around(patch, LEADER, "leader_high_watermark", high)


def a_leader_begins_at_its_end(patch: Patch) -> None:
    def begin(original: Any, self: LeaderRole, partition: int, state: Any, log: ReplicaLog, *given: Any) -> None:
        original(self, partition, state, log, *given)
        log.set_high_watermark(log.log.log_end_offset)

    around(patch, LeaderRole, "__init__", begin)


def no_writes_are_taken_at_the_end(patch: Patch) -> None:
    def append(original: Any, self: LeaderRole, write: Any, sender: Any, moment: Any, out: Any) -> Any:
        if self.partition == 1 and moment.now_ms > QUIET.wall_clock_ms + QUIET.duration_ms:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return original(self, write, sender, moment, out)

    around(patch, LeaderRole, "append", append)


def followers_keep_low_high_watermarks(patch: Patch) -> None:
    def after(original: Any, *given: Any) -> Any:
        told = original(*given)
        return attrs.evolve(told, high_watermark=max(told.high_watermark - 1, 0))

    around(patch, replication.roles.follower, "after_answer", after)


def consumers_get_no_end(patch: Patch) -> None:
    def answer(original: Any, role: Any, replica: Any, ask: Any, *given: Any) -> Any:
        told = original(role, replica, ask, *given)
        return attrs.evolve(told, records=b"") if ask.offset >= 5 else told

    around(patch, BROKER, "answer_consumer", answer)


def nobody_may_stop(patch: Patch) -> None:
    around(patch, CONTROLLER, "may_stop", lambda _original, **_given: False)


def nobody_is_balanced(patch: Patch) -> None:
    around(patch, ControllerRole, "_balance", lambda _original, _self: None)


def moves_are_not_begun(patch: Patch) -> None:
    around(patch, ControllerRole, "_reassign", lambda _original, _self, _order: ErrorCode.NONE)


def nobody_lags(patch: Patch) -> None:
    around(patch, LEADER, "lagging", lambda _original, *_given: ())


def nobody_lags_nor_fetches(patch: Patch) -> None:
    """From 20 to 85 s broker 2 is alive, reached, in the ISR, and fetches nothing."""
    nobody_lags(patch)

    def on_fetch(original: Any, self: LeaderRole, fetch: Any, sender: Any, moment: Any, out: Any) -> None:
        if sender.node != 2 or not 20_000 < moment.now_ms - QUIET.wall_clock_ms < 85_000:
            original(self, fetch, sender, moment, out)

    around(patch, LeaderRole, "on_fetch", on_fetch)


def writes_are_refused_in_between(patch: Patch) -> None:
    def append(original: Any, self: LeaderRole, write: Any, sender: Any, moment: Any, out: Any) -> Any:
        if 40_000 < moment.now_ms - QUIET.wall_clock_ms < 80_000:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return original(self, write, sender, moment, out)

    around(patch, LeaderRole, "append", append)


def high_watermarks_stand_still(patch: Patch) -> None:
    """From 20 to 85 s no leader raises its high watermark."""

    def high_watermark(original: Any, leader: Any, log: Any, moment: Any, *given: Any) -> Any:
        is_still = 20_000 < moment.now_ms - QUIET.wall_clock_ms < 85_000
        return log.high_watermark if is_still else original(leader, log, moment, *given)

    for owner in (LEADER, replication.rules.fetch):
        around(patch, owner, "leader_high_watermark", high_watermark)


LAGGING: Final = attrs.evolve(QUIET, duration_ms=DurationMs(90_000))
FOLLOWER_CUT: Final = (Fault(TimeMs(5_000), FaultKind.CUT_PEERS, 2, DurationMs(80_000)),)
"""Broker 2 is alive for the controller, and cannot fetch."""
BALANCED: Final = attrs.evolve(QUIET, role_settings=RoleSettings(balance_ms=DurationMs(18_000)))
"""Broker 0 is back and in the ISR of the partitions that it prefers to lead before they are balanced."""
MOVE: Final = (Fault(TimeMs(5_000), FaultKind.REASSIGN, 0, choice=1),)
ALL_DIE: Final = tuple(Fault(TimeMs(5_000), FaultKind.KILL, broker, DurationMs(20_000)) for broker in range(3))
STOP_AFTER_ANOTHER: Final = (
    Fault(TimeMs(5_000), FaultKind.KILL, 1, DurationMs(60_000)),
    Fault(TimeMs(20_000), FaultKind.STOP, 2, DurationMs(3_000)),
)
"""Broker 2 leaves an ISR that is too small without it, and stops cleanly."""
STOPS: Final = attrs.evolve(QUIET, fault_ms=((FaultKind.STOP, DurationMs(90_000)),))
CANCELLED: Final = varied(48, DurationMs(180_000))
"""A seed that cancels a move with one of the added replicas in the ISR."""

BROKEN: Final[tuple[tuple[str, Break, Options, tuple[Fault, ...] | None], ...]] = (
    ("I15", a_leader_begins_at_its_end, FAR_ALONE, FOLLOWERS_DIE),
    ("I29", the_silent_are_not_waited_for, QUIET, DEAD_FOLLOWER),
    ("L10", no_writes_are_taken_at_the_end, QUIET, ()),
    ("L11", followers_keep_low_high_watermarks, QUIET, ()),
    ("L12", consumers_get_no_end, QUIET, ()),
    ("L13", nobody_may_stop, STOPS, ()),
    ("L14", nobody_is_balanced, BALANCED, FAILOVER),
    ("L14", moves_are_not_begun, attrs.evolve(QUIET, brokers=4), MOVE),
    ("L15", nobody_lags, LAGGING, FOLLOWER_CUT),
    ("L16", nobody_lags_nor_fetches, LAGGING, ()),
    ("L16", writes_are_refused_in_between, LAGGING, ()),
    ("L16", high_watermarks_stand_still, LAGGING, FAILOVER),
    ("I31", nobody_is_eligible, LAGGING, TWO_DIE),
    ("I31", the_last_member_is_not_eligible, LAGGING, ALL_DIE),
    ("I31", every_stop_is_unclean, LAGGING, STOP_AFTER_ANOTHER),
    ("I31", clean_stops_leave_no_file, LAGGING, STOP_AFTER_ANOTHER),
    ("I32", cancelled_moves_keep("replicas"), CANCELLED, None),
    ("I32", cancelled_moves_keep("isr"), CANCELLED, None),
    ("I32", cancelled_moves_keep("adding", "replicas"), CANCELLED, None),
    ("I32", cancelled_moves_keep("replicas", "isr"), CANCELLED, None),
    ("L14", cancellations_are_forgotten, CANCELLED, None),
    ("I26", one_of_the_added_is_enough, CANCELLED, None),
    ("I26", moves_leave_the_removed, CANCELLED, None),
)


@pytest.mark.parametrize(
    ("code", "break_it", "options", "plan"), BROKEN, ids=[f"{row[0]}-{row[1].__name__}" for row in BROKEN]
)
def test_a_broken_model_is_found(
    code: str, break_it: Break, options: Options, plan: tuple[Fault, ...] | None, monkeypatch: Patch
) -> None:
    break_it(monkeypatch)
    assert code in {finding.code for finding in run(options, plan).findings}


@pytest.mark.parametrize(("options", "plan"), list(dict.fromkeys(row[2:] for row in BROKEN)))
def test_the_same_runs_are_clean_as_long_as_nothing_is_broken(options: Options, plan: tuple[Fault, ...] | None) -> None:
    assert run(options, plan).findings == ()


def test_a_leader_that_has_heard_of_a_move_away_and_back_is_held_to_the_new_log(monkeypatch: Patch) -> None:
    """What a leader cannot know yet it is not held to; what it has heard it is."""
    scenario = removed_and_added_again()
    assert scenario.play().differences == ()
    a_leader_counts_who_is_added(monkeypatch)
    options, extension = scenario.options(), ScenarioExtension(scenario.operations, ())
    assert "I4" in {each.code for each in run(options, extension=extension).findings}


@pytest.mark.parametrize("since_s", [0, 21, 35])
def test_a_partition_whose_high_watermark_stops_for_good_is_found_while_groups_commit(
    since_s: int, monkeypatch: Patch
) -> None:
    """L11: its logs may have been level before: they have to be once more after the cluster was left alone."""
    options = with_groups(attrs.evolve(QUIET, partitions=1))
    simulation = Simulation(options, (), extension=GroupsExtension.drawn(options, 2, NEWEST))
    cluster, offsets = simulation.cluster, 3  # Both groups commit to partition 3.
    kept = ReplicaLog.set_high_watermark

    def set_high_watermark(log: ReplicaLog, offset: Offset) -> None:
        is_follower = log.log is cluster.nodes[BrokerId(2)].logs.get(offsets, log).log
        if not is_follower or cluster.now_ms < since_s * 1_000:
            kept(log, offset)

    monkeypatch.setattr(ReplicaLog, "set_high_watermark", set_high_watermark)
    assert {finding.code for finding in simulation.finish().findings} == {"I33", "L11"}


MEMBER_PAUSED: Final = (Fault(TimeMs(5_000), FaultKind.PAUSE, 2, DurationMs(80_000)),)


@pytest.mark.parametrize("plan", [FOLLOWER_CUT, MEMBER_PAUSED])
def test_a_member_that_cannot_be_reached_stands_in_the_way_of_writes(
    plan: tuple[Fault, ...], monkeypatch: Patch
) -> None:
    """Nobody leaves the ISR for its lag, so nothing is committed: that is no fault of the leader's (L16)."""
    nobody_lags(monkeypatch)
    patient = attrs.evolve(LAGGING, role_settings=RoleSettings(session_ms=DurationMs(200_000)))
    found = {finding.code for finding in run(patient, plan).findings}
    assert "L16" not in found
    assert "L15" in found


BY_A_RULE_TURNED_OFF: Final = {"I2", "I3", "I4", "I5", "I6", "I7", "I9", "I10", "I16"}
"""Seen red in whole runs by `test_mutations` and `test_checkers`."""
BEHIND_ITS_BACK: Final = {f"I{number}" for number in (1, 8, 11, 12, 13, 14, *range(17, 26), 27, 28)}
"""Seen red in a healthy cluster by `test_checkers`."""


@pytest.mark.parametrize("seed", [3, 9])
def test_to_watch_who_lags_changes_no_history(seed: int, monkeypatch: Patch) -> None:
    options = swarm(seed, DurationMs(30_000))
    watched = run(options)
    for watch in (LagWatch, WriteWatch):
        around(monkeypatch, watch, "begin", lambda _original, _self: None)
    assert run(options).digest == watched.digest


def test_a_log_that_outlives_its_topic_is_found(monkeypatch: Patch) -> None:
    options = attrs.evolve(QUIET, partitions=1)
    replicas = tuple(BrokerId(broker) for broker in range(3))
    operations = (
        AskController(5_000, DeleteTopic(0)),
        AskController(6_000, CreateTopic(1, replicas, "another")),
    )
    # A write that waits for the deleted topic's partition is given up; none is owed to it after the faults.
    assert run(options, (), extension=ScenarioExtension(operations, ())).findings == ()
    around(monkeypatch, Node, "_drop_log", lambda _original, *_given: None)
    (finding,) = run(options, (), extension=ScenarioExtension(operations, ())).findings
    assert (finding.code, "has logs on [0, 1, 2]" in finding.what) == ("L14", True)


def test_every_invariant_is_seen_red() -> None:
    codes = {row[0] for row in BROKEN} | BY_A_RULE_TURNED_OFF | BEHIND_ITS_BACK
    assert codes == {f"I{number}" for number in range(1, 33) if number != 30} | {
        f"L{number}" for number in range(10, 17)
    }
    assert codes <= set(INVARIANTS)


def test_what_a_model_raises_ends_its_own_run_with_seed_and_step(monkeypatch: Patch) -> None:
    def advance(_original: Any, self: LeaderRole, *_given: Any) -> None:
        raise KeyError(self.partition)

    around(monkeypatch, LeaderRole, "advance", advance)
    (finding, *_) = run(QUIET).findings
    assert finding.code == "A"
    assert re.fullmatch(r"KeyError at seed 1, step [\d,]+: [01]", finding.what), finding.what


def test_a_run_that_makes_no_progress_ends_and_says_what_repeats(monkeypatch: Patch) -> None:
    def handle(original: Any, self: ControllerRole, message: Any, sender: Any, now_ms: TimeMs, out: Any) -> None:
        original(self, message, sender, now_ms, out)
        if isinstance(message, SessionsDue):
            out.wake(0, SessionsDue())

    around(monkeypatch, ControllerRole, "handle", handle)
    (finding, *_) = run(QUIET).findings
    assert finding.code == "A"
    assert "50,800 events in one simulated second, most of them SessionsDue at the controller (" in finding.what


def test_a_cluster_that_is_busy_and_does_not_become_whole_ends_its_run(monkeypatch: Patch) -> None:
    """The events of the whole liveness phase are at most those of 20 seconds under faults."""

    def handle(original: Any, self: ControllerRole, message: Any, sender: Any, now_ms: TimeMs, out: Any) -> None:
        original(self, message, sender, now_ms, out)
        if isinstance(message, SessionsDue) and now_ms > QUIET.duration_ms:
            out.woken[:] = [(DurationMs(1), SessionsDue())]

    around(monkeypatch, ControllerRole, "handle", handle)
    followers_keep_low_high_watermarks(monkeypatch)
    simulation = Simulation(QUIET, ())
    simulation.cluster.events_per_second_max = 2_000
    finding = simulation.finish().findings[-1]
    assert finding.code == "L11"
    what = r"; no progress in 4\d,\d\d\d events after the faults, most of them SessionsDue at the controller \("
    assert re.search(what, finding.what), finding.what
    assert finding.at_ms < QUIET.duration_ms + QUIET.heal_ms_max


def test_a_campaign_goes_on_after_a_run_that_raises(monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    def strike(original: Any, self: Any, *given: Any) -> None:
        if self._cluster.options.seed == 2:
            raise ZeroDivisionError("of the model")
        original(self, *given)

    around(monkeypatch, FaultInjector, "heal", strike)
    assert run_command(simulate, "simulate", ["--quiet", "--seed", "1", "--seeds", "3", "--minutes", "0.05"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"seed 2: A broken at 3000 ms: ZeroDivisionError at seed 2, step [\d,]+: of the model", lines[0])
    assert lines[1] == "  again: brokerside simulate --quiet --minutes 0.05 --seed 2"
    assert lines[2] == "1 broken; 0 of 3 runs lost acks=all records"
