"""Changes of a partition, and the values that are refused, against facts kept in tables.

The states are any that can be written down, also those that no controller comes to.

Source: Kafka's PartitionChangeBuilder (electLeader, tryElection, build), 4.3.1; KIP-106, 455, 537, 704 and 966.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import pytest
from hypothesis import given

from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId, LeaderEpoch, Offset
from broker.releases import KNOWN
from replication.roles.controller import ControllerRole
from replication.roles.messages import PartitionRecord
from replication.roles.settings import RoleSettings
from replication.roles.states import MACHINES, find_machines
from replication.roles.states.partition_status import MoveInput, check_change, move_input
from replication.rules.controller_events import directories_assigned
from replication.rules.election import NOBODY, Ballot, Choice, Elected, Election, ElectionPolicy, elect
from replication.rules.elr import next_elr, next_last_known
from replication.rules.partition import EpochStart, LogState, PartitionEpoch, PartitionState
from replication.rules.partition_change import Target, change
from replication.rules.reassign import Phase, completed, started
from replication.rules.settings import PartitionSettings, needed_in_sync
from replication.rules.switches import CURRENT, RELEASES, SWITCHES, Rules, without
from tests.support.drawing import DRAWS, Draws

_BROKERS: Final = tuple(map(BrokerId, range(6)))
_UNCLEAN: Final = (Choice.LAST_KNOWN, Choice.UNCLEAN)
_ANSWERS: Final = tuple(Choice[name] for name in ("STAYS", "IN_SYNC", "ELIGIBLE", "LAST_KNOWN", "UNCLEAN"))
_BEFORE_KIP_106: Final = ("0.10.2",)
_BEFORE_KIP_537: Final = ("0.10.2", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4")


def _is_refused(call: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        call()
    except errors:
        return True
    return False


def _partition(draws: Draws) -> PartitionState:
    """Return a partition whose parts fit together; its ELR may hold a former replica, as Kafka's may."""
    replicas = draws.some(_BROKERS, 1)
    isr = draws.some(replicas)
    outside = [each for each in (*replicas, BrokerId(9)) if each not in isr]
    return PartitionState(
        replicas=replicas,
        isr=isr,
        leader=draws.one((NO_LEADER, *isr)),
        leader_epoch=LeaderEpoch(draws.number(0, 3)),
        partition_epoch=PartitionEpoch(draws.number(0, 3)),
        elr=draws.some(outside) if draws.is_one_in(2) else (),
        last_known=draws.one(((), (draws.one((*replicas, BrokerId(9))),), replicas[:2])),
        recovering=draws.is_one_in(3),
    )


def elected(draws: Draws) -> Iterator[str]:
    """Yield an election that another wins than the first of the candidates."""
    ballot, election = _ballot(draws), draws.one(tuple(Election))
    rules = attrs.evolve(CURRENT, elr=not draws.is_one_in(4), last_known_leader_alive=draws.is_one_in(2))
    wanted = _winner(ballot, election, rules)
    if elect(ballot, election, rules) != wanted:
        yield f"{election.name} of {ballot}: {elect(ballot, election, rules)}, and {wanted} is due"


def _ballot(draws: Draws) -> Ballot:
    state = _partition(draws)
    return Ballot(
        replicas=state.replicas,
        isr=draws.one((state.isr, ())),
        elr=draws.one((state.elr, ())),
        leader=state.leader,
        last_known=state.last_known,
        acceptable=frozenset(draws.some(_BROKERS)),
    )


def _winner(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Return the first candidate that is there, of those that have every record, then of the others."""
    complete = [each for each in ballot.isr or ballot.elr if each in ballot.acceptable]
    preferred = ballot.replicas[:1] if election is Election.PREFERRED else ()
    for each in (*preferred, ballot.leader, *ballot.replicas):
        if each in complete:
            ground = Choice.IN_SYNC if each in ballot.isr else Choice.ELIGIBLE
            return Elected(each, Choice.STAYS if each == ballot.leader else ground)
    known = ballot.last_known if rules.elr and not ballot.isr and not ballot.elr else ()
    last = [each for each in known if each in ballot.acceptable or not rules.last_known_leader_alive]
    if len(known) == 1 and last and last[0] in ballot.replicas:
        return Elected(last[0], Choice.LAST_KNOWN)
    alive = [each for each in ballot.replicas if each in ballot.acceptable]
    return Elected(alive[0], Choice.UNCLEAN) if alive and election is Election.UNCLEAN else NOBODY


def changed(draws: Draws) -> Iterator[str]:
    """Yield a partition that a change makes another than the election's outcome and the new ISR say."""
    state, rules = _partition(draws), draws.rules()
    settings = PartitionSettings(
        rules=rules,
        min_isr=draws.number(1, 3),
        unclean_election=draws.is_one_in(2),
        topic_replica_count=draws.one((None, 1, 2, 4)),
    )
    phase = Phase(replicas=state.replicas, isr=draws.some(state.replicas))
    if draws.is_one_in(4):
        phase = attrs.evolve(started(state, draws.some(_BROKERS, 1)), isr=phase.isr)
    target = Target(
        phase=phase,
        election=draws.one(tuple(Election)),
        recovering=draws.is_one_in(3),
        unclean=draws.some(state.replicas) if draws.is_one_in(3) else (),
    )
    answer = _answer(draws)
    policy: ElectionPolicy = elect if draws.is_one_in(2) else lambda *_: answer  # type: ignore[assignment] # a policy of somebody's own may answer anything.
    alive = frozenset(draws.some(_BROKERS))
    phase = completed(phase, rules) or phase
    is_one = isinstance(answer, Elected) and answer.leader in (NO_LEADER, *phase.replicas)
    if policy is not elect and not is_one:
        if not _is_refused(lambda: change(state, target, alive, settings, policy), UsageError):
            yield f"a policy elects {answer} of {phase.replicas}"
        return
    told = change(state, target, alive, settings, policy)
    wanted = _after(state, attrs.evolve(target, phase=phase), alive, settings, policy)
    later = PartitionEpoch(state.partition_epoch + 1)
    if told != (None if wanted == state else attrs.evolve(wanted, partition_epoch=later)):
        yield f"{state} to {target}, alive {sorted(alive)}, by {settings}: {told}, and {wanted} is due"
    there = directories_assigned(state, settings)
    kept = state.elr if rules.elr_kept_by_every_change else ()
    if there != attrs.evolve(state, elr=kept, partition_epoch=later):
        yield f"{state} in other directories is {there}"


def _answer(draws: Draws) -> object:
    if draws.is_one_in(4):
        return draws.one((None, 1, NOBODY, (1, Choice.IN_SYNC)))
    return Elected(draws.one((*_BROKERS, BrokerId(9))), draws.one(_ANSWERS))


def _after(
    state: PartitionState,
    target: Target,
    alive: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy,
) -> PartitionState:
    """Return what the partition is to be, but for its own epoch."""
    rules, phase = settings.rules, target.phase
    elr: tuple[BrokerId, ...] = state.elr
    if rules.elr:
        count = settings.topic_replica_count or len(state.replicas)
        least = needed_in_sync(settings.min_isr, count, rules)
        elr = next_elr(state, phase.isr, target.unclean, least)
        elr = tuple(each for each in elr if each in phase.replicas or not rules.elr_holds_replicas_only)
    ballot = Ballot(
        replicas=phase.replicas,
        isr=phase.isr,
        elr=elr,
        leader=state.leader,
        last_known=state.last_known,
        acceptable=alive,
    )
    won = _winner(ballot, target.election, rules) if policy is elect else policy(ballot, target.election, rules)
    is_new = won.leader != state.leader
    is_unclean = is_new and won.choice in _UNCLEAN
    is_alone = is_unclean or (is_new and won.leader in elr)
    isr = (won.leader,) if is_alone else phase.isr
    elr = tuple(each for each in elr if rules.elr and not is_unclean and not (is_new and each == won.leader))
    if not isr and not rules.elr:
        isr = state.isr
    lost_replicas, lost_members = {*state.replicas} - {*phase.replicas}, {*state.isr} - {*isr}
    begins = is_new or bool(lost_replicas) or bool(lost_members and not rules.isr_shrink_keeps_leader_epoch)
    return PartitionState(
        replicas=phase.replicas,
        isr=isr,
        leader=won.leader,
        leader_epoch=LeaderEpoch(state.leader_epoch + 1) if begins else state.leader_epoch,
        partition_epoch=state.partition_epoch,
        elr=elr,
        last_known=next_last_known(state, won.leader if begins else None) if rules.elr else state.last_known,
        adding=phase.adding,
        removing=phase.removing,
        recovering=target.recovering or (is_unclean and rules.leader_recovery_state),
    )


def refused(draws: Draws) -> Iterator[str]:
    """Yield a change, a partition or a log that is taken and cannot be, or the other way round."""
    before, after = draws.one((None, _partition(draws))), _partition(draws)
    led = before is not None and before.has_leader
    if before is None:
        is_sound = after.has_leader and not after.recovering
    elif after.recovering and not before.recovering:
        is_sound = after.leader not in (NO_LEADER, before.leader)
    else:
        is_sound = after.recovering == before.recovering or (led and after.has_leader)
    if _is_refused(lambda: check_change(before, after), AssertionError, UsageError) == is_sound:
        yield f"{after} after {before} is refused: {is_sound}"
    controller = ControllerRole(RoleSettings())
    if before is not None:
        controller.image.apply((PartitionRecord(0, before),))
        after = attrs.evolve(after, partition_epoch=PartitionEpoch(before.partition_epoch + 1))
    record = PartitionRecord(0, after)
    if _is_refused(lambda: controller._write(record), AssertionError, UsageError) == is_sound:
        yield f"{after} after {before} is written: {not is_sound}"
    numbers = [draws.number(-1, 4) for _ in range(3)]
    start, high, end = sorted(numbers) if draws.is_one_in(2) else numbers
    epochs = [(draws.number(0, 5), draws.number(0, 5)) for _ in range(draws.number(0, 3))]
    if draws.is_one_in(2):
        epochs = list(zip(*(sorted(column) for column in zip(*epochs, strict=True)), strict=True))
    log = LogState(
        Offset(start), Offset(end), Offset(high), tuple(EpochStart(LeaderEpoch(one), Offset(at)) for one, at in epochs)
    )
    rises = all(one < two and at < to for (one, at), (two, to) in itertools.pairwise(epochs))
    is_within = not epochs or (start <= epochs[0][1] and epochs[-1][1] <= end)
    is_sound = 0 <= start <= high <= end and rises and is_within
    if _is_refused(log.check_invariants, AssertionError) == is_sound:
        yield f"{log} is refused: {is_sound}"
    spoilt = _spoilt(draws, after)
    if _is_refused(after.check_invariants, AssertionError) or not _is_refused(spoilt.check_invariants, AssertionError):
        yield f"{after} or {spoilt}: the one is sound, the other is not"


def _spoilt(draws: Draws, state: PartitionState) -> PartitionState:
    """Return a partition of which one part does not fit to the others."""
    stranger, first = BrokerId(8), state.replicas[0]
    others = [each for each in (*state.replicas, stranger) if each not in state.isr]
    return draws.one(
        (
            attrs.evolve(state, replicas=(*state.replicas, first)),
            attrs.evolve(state, replicas=(), isr=(), leader=NO_LEADER),
            attrs.evolve(state, isr=(*state.isr, stranger)),
            attrs.evolve(state, isr=(*state.isr, first, first), elr=()),
            attrs.evolve(state, elr=(stranger, stranger)),
            attrs.evolve(state, isr=(first,), elr=(first,), leader=NO_LEADER),
            attrs.evolve(state, adding=(stranger,)),
            attrs.evolve(state, removing=(first, first)),
            attrs.evolve(state, leader=draws.one(others)),
        )
    )


def moved(draws: Draws) -> Iterator[str]:
    """Yield a step of a move that is taken for another."""
    replicas, target, later = draws.some(_BROKERS, 1), draws.some(_BROKERS, 1), draws.some(_BROKERS, 1)
    settled = PartitionState(replicas=replicas, isr=(), leader=NO_LEADER)
    moving, turned = _moving(settled, target), _moving(settled, later)
    ended = attrs.evolve(settled, replicas=target)
    if not moving.is_reassigning:
        steps = [(settled, moving, MoveInput.UNTOUCHED if target == replicas else MoveInput.REORDERED)]
    else:
        is_other = (moving.replicas, moving.adding) != (turned.replicas, turned.adding)
        steps = [
            (settled, moving, MoveInput.STARTED),
            (moving, attrs.evolve(moving, isr=target), MoveInput.UNTOUCHED),
            (moving, ended, MoveInput.COMPLETED),
            (moving, settled, MoveInput.CANCELLED),
        ]
        if turned.is_reassigning and is_other:
            steps.append((moving, turned, MoveInput.RETARGETED))
    for before, after, wanted in steps:
        if move_input(before, after) is not wanted:
            yield f"{after} after {before} is {move_input(before, after).name}, not {wanted.name}"


def _moving(state: PartitionState, target: tuple[BrokerId, ...]) -> PartitionState:
    goes, comes = {*state.replicas} - {*target}, {*target} - {*state.replicas}
    return attrs.evolve(
        state, replicas=(*target, *sorted(goes)), adding=tuple(sorted(comes)), removing=tuple(sorted(goes))
    )


def named(draws: Draws) -> Iterator[str]:
    """Yield a name that is none and is taken, or a release with the defaults of another."""
    switch, machine, release = draws.one(tuple(SWITCHES)), draws.one(MACHINES), draws.one(tuple(KNOWN))
    if getattr(without(CURRENT, switch), switch) or find_machines(machine.name) != (machine,):
        yield f"{switch} is on, or {machine.name} is another: {find_machines(machine.name)}"
    if find_machines("all") != MACHINES:
        yield f"all machines are {find_machines('all')}"
    for word in (f"{switch}x", "truncation", ""):
        if not _is_refused(lambda name=word: without(CURRENT, name), UsageError):  # type: ignore[misc] # mypy infers no default.
            yield f"{word!r} is a switch"
        if not _is_refused(lambda name=word: find_machines(name), UsageError):  # type: ignore[misc] # mypy infers no default.
            yield f"{word!r} is a machine"
    told = RELEASES[release]
    wanted = (10_000 if release in _BEFORE_KIP_537 else 30_000, release in _BEFORE_KIP_106)
    if (told.lag_ms_max, told.unclean_election) != wanted:
        yield f"{release} has {told.lag_ms_max} ms, unclean election {told.unclean_election}"


CHECKS: Final = (elected, changed, refused, moved, named)


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__.strip("_"))
@given(draws=DRAWS)
def test_a_change_follows_from_the_facts(check: Callable[..., Iterator[str]], draws: Draws) -> None:
    assert [*check(draws)] == []
