"""The decisions of a controller against facts kept in tables: reassignments, ELR, registrations, AlterPartition.

The rules of former releases are drawn here, too; Kafka's own answers (`roles.test_kafka_answers`) are of the newest.

Source: Kafka's PartitionReassignmentReplicas and -Revert, PartitionChangeBuilder, ReplicationControlManager
(validateAlterPartitionData), LogManager (isStrayKraftReplica); java.util.HashSet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs
import pytest
from hypothesis import given

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch
from broker.units import DurationMs, TimeMs
from replication.rules.alter_partition import validate
from replication.rules.elr import next_elr, next_last_known
from replication.rules.fencing import (
    StopProof,
    StoredReplica,
    check_broker_epoch,
    check_control_request,
    has_session,
    is_clean_registration,
    is_session_valid,
    is_stray,
    may_stop,
    proof_at_stop,
    proof_while_loading,
)
from replication.rules.partition import (
    AlterPartitionRequest,
    BrokerStatus,
    IsrMember,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.reassign import cancelled, completed, started
from replication.rules.settings import PartitionSettings
from tests.support.drawing import DRAWS, Draws

_IDS: Final = (*range(9), 16, 17, 18, 33, 34, 48, 65, 1_000, 70_000)


def _brokers(draws: Draws, least: int = 0) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, draws.some(_IDS, least)))


def _in_hash_set(first: tuple[int, ...], added: tuple[int, ...]) -> list[int]:
    """Return the order of `new HashSet<>(first)` after `addAll(added)`: bins, each in the order of arrival."""
    size = 16
    while size < int(len(first) / 0.75) + 1:
        size *= 2
    there: list[int] = []
    for each in (*first, *added):
        if each not in there:
            there.append(each)
            if len(there) > size * 0.75:
                size *= 2
    bins: dict[int, list[int]] = {}
    for each in there:
        bins.setdefault((each ^ (each >> 16)) % size, []).append(each)
    return [each for place in sorted(bins) for each in bins[place]]


def _eligible(draws: Draws) -> Iterator[str]:
    """Yield an ELR that is not who was eligible or in sync, less who is in sync or stopped uncleanly."""
    is_wide = draws.is_one_in(3)  # Around 12 a HashSet takes twice the bins.
    replicas = _brokers(draws, 11 if is_wide else 1)
    isr, unclean = draws.some(replicas), draws.some(replicas)
    elr = tuple(each for each in draws.some(replicas, len(replicas) if is_wide else 0) if each not in isr)
    leader = draws.one((NO_LEADER, *isr))
    known = draws.one(((), (replicas[0],)))
    state = PartitionState(replicas=replicas, isr=isr, leader=leader, elr=elr, last_known=known)
    following, least = draws.some(isr), draws.number(1, 4)
    wanted = [each for each in _in_hash_set(elr, isr) if each not in {*following, *unclean}]
    told = next_elr(state, following, unclean, least)
    if list(told) != ([] if len(following) >= least else wanted):
        yield f"{state} with ISR {following} of {least}, unclean {unclean}: {told}"
    for written in (None, NO_LEADER, replicas[0]):
        lost = (leader,) if written == NO_LEADER and not known else known
        expected = () if written == replicas[0] else lost
        if next_last_known(state, written) != expected:
            yield f"{state} led by {written}: last known {next_last_known(state, written)}"


def _moved(draws: Draws) -> Iterator[str]:
    """Yield a reassignment that begins, ends or is cancelled with other replicas than it must."""
    replicas, rules = _brokers(draws, 1)[:5], draws.rules()
    isr = draws.some(replicas)
    target = _brokers(draws, 1)[:5]
    begun = started(PartitionState(replicas=replicas, isr=isr, leader=NO_LEADER), target)
    goes, comes = sorted({*replicas} - {*target}), sorted({*target} - {*replicas})
    if (list(begun.removing), list(begun.adding), begun.isr) != (goes, comes, isr):
        yield f"from {replicas} to {target}: {begun}"
    if begun.replicas != (*target, *goes) or begun.loses:
        yield f"from {replicas} to {target}: {begun}"
    reached = attrs.evolve(begun, isr=draws.some(begun.replicas))
    in_sync = [each for each in reached.isr if each not in goes]
    needed = {*comes}
    if rules.reassignment_needs_all_targets and (not rules.reassignment_ignores_kept or len(comes) < len(goes)):
        needed = {*target}
    is_over = bool(goes or comes) and needed <= {*in_sync} and bool(in_sync or not goes)
    ended = completed(reached, rules)
    found = None if ended is None else (ended.replicas, list(ended.isr), ended.adding, ended.removing)
    if found != ((target, in_sync, (), ()) if is_over else None):
        yield f"{reached} ends as {ended}, needed {needed}"
    if begun.adding or begun.removing:
        state = PartitionState(
            replicas=begun.replicas, isr=reached.isr, leader=NO_LEADER, adding=begun.adding, removing=begun.removing
        )
        back = cancelled(state)
        kept = [each for each in begun.replicas if each not in comes]
        left = [each for each in reached.isr if each not in comes]
        if (list(back.replicas), list(back.isr), back.loses) != (kept, left or kept[:1], not left):
            yield f"{state} goes back to {back}"
        if back.adding or back.removing:
            yield f"{state} goes back to {back}"
        again = started(state, tuple(kept))
        if again.adding != begun.adding or {*again.removing} != ({*comes} or {*begun.removing}):
            yield f"{state} turned to {kept} is {again}"


def _registered(draws: Draws) -> Iterator[str]:
    """Yield where a broker of a former life is heard, or one that may have lost records counts as clean."""
    rules, own, said = draws.rules(), BrokerEpoch(draws.number(0, 3)), BrokerEpoch(draws.number(-1, 3))
    status = draws.one((None, BrokerStatus(epoch=own)))
    stale, none = ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NONE
    if check_broker_epoch(status, said) is not (none if status is not None and own == said else stale):
        yield f"epoch {said} of {status} is answered {check_broker_epoch(status, said)}"
    is_former = 0 <= said < own and rules.control_request_broker_epoch
    if check_control_request(own, said, rules) is not (stale if is_former else none):
        yield f"a request to {said} is answered {check_control_request(own, said, rules)} in {own}"
    heard, now, length = draws.number(0, 9), draws.number(0, 20), draws.number(0, 9)
    if is_session_valid(TimeMs(heard), TimeMs(now), DurationMs(length)) != (now - heard <= length):
        yield f"a session of {length} from {heard} on at {now}"
    fenced, heard_ms = draws.is_one_in(2), draws.one((None, TimeMs(0), TimeMs(5)))
    counts = heard_ms is not None and not (fenced and not rules.fenced_broker_has_session)
    if has_session(heard_ms, fenced=fenced, rules=rules) != counts:
        yield f"heard of at {heard_ms}, fenced {fenced}: {not counts}"
    leads, offset, read = draws.number(0, 1), draws.number(0, 2), draws.number(0, 2)
    stops = may_stop(leaderships=leads, shutdown_offset=offset, least_metadata_offset=read)
    if stops != (not leads and read >= offset):
        yield f"may stop with {leads} at {offset}, read {read}: {stops}"
    recovered, first = draws.is_one_in(2), rules.clean_marker_removed_first
    left = proof_at_stop(own, logs_recovered=recovered, rules=rules)
    if left.epoch != (own if recovered or not first else None):
        yield f"recovered {recovered}, it leaves {left}"
    if proof_while_loading(StopProof(own), rules).epoch != (None if first else own):
        yield f"a crash leaves {proof_while_loading(StopProof(own), rules)}"
    proof = StopProof(draws.one((None, own, said)))
    is_clean = status is not None and proof.epoch == own
    if is_clean_registration(proof, status) != is_clean:
        yield f"{proof} of {status} is clean: {not is_clean}"
    least, lag = draws.number(-1, 2), draws.number(-1, 1)
    try:
        PartitionSettings(min_isr=least, lag_ms_max=DurationMs(lag))
        is_taken = True
    except UsageError:
        is_taken = False
    if is_taken != (least >= 1 and lag >= 0):
        yield f"min.insync.replicas {least} with a lag of {lag} is taken: {is_taken}"


def _stray(draws: Draws) -> Iterator[str]:
    """Yield a log that is removed though its broker holds the partition, or stays though it does not."""
    broker, rules = BrokerId(1), draws.rules()
    topics = {number: draws.one(("a", "b")) for number in range(draws.number(0, 3))}
    partitions = {
        number: PartitionState(replicas=draws.some((broker, BrokerId(2)), 1), isr=(), leader=NO_LEADER)
        for number in topics
    }
    stored = StoredReplica(draws.one(("a", "b")), draws.number(0, 3))
    mine = {number for number, state in partitions.items() if broker in state.replicas}
    names = {topics[number] for number in mine}
    is_known = stored.topic_id in mine if rules.topic_id_check else stored.topic in names
    if is_stray(stored, broker, topics, partitions, rules) == is_known:
        yield f"{stored} of {topics}, {partitions} is stray: {is_known}"


def _altered(draws: Draws) -> Iterator[str]:
    """Yield an AlterPartition that is taken or refused for another cause than the first there is."""
    replicas, rules = tuple(map(BrokerId, range(3))), draws.rules()
    state = PartitionState(
        replicas=replicas,
        isr=replicas,
        leader=draws.one(replicas),
        leader_epoch=LeaderEpoch(3),
        partition_epoch=PartitionEpoch(5),
        recovering=draws.is_one_in(2),
    )
    members = draws.some((*replicas, BrokerId(9), BrokerId(0)) if draws.is_one_in(4) else replicas)
    statuses = {
        broker: BrokerStatus(epoch=BrokerEpoch(7), fenced=draws.is_one_in(9), shutting_down=draws.is_one_in(9))
        for broker in replicas
        if not draws.is_one_in(9)
    }
    request = AlterPartitionRequest(
        leader=state.leader if not draws.is_one_in(6) else BrokerId(1),
        leader_epoch=LeaderEpoch(draws.one((2, 3, 3, 3, 3, 4))),
        partition_epoch=PartitionEpoch(draws.one((4, 5, 5, 5, 5, 6))),
        isr=tuple(IsrMember(broker, BrokerEpoch(draws.one((7, 7, 7, -1, 6)))) for broker in members),
        recovering=draws.is_one_in(4),
    )
    barred = False
    for member in request.isr:
        status = statuses.get(member.broker)
        if rules.isr_join_eligibility:
            barred |= status is None or status.fenced or status.shutting_down
        if rules.isr_join_broker_epoch and member.epoch >= 0:
            barred |= status is None or status.epoch != member.epoch
    ahead = request.leader_epoch > 3 or request.partition_epoch > 5
    unsound = len({*members}) < len(members) or not {*members} <= {*replicas} or request.leader not in members
    causes = (
        (ErrorCode.NOT_CONTROLLER, ahead and rules.isr_write_ahead_refused),
        (ErrorCode.FENCED_LEADER_EPOCH, request.leader_epoch < 3 and rules.isr_write_epoch_check),
        (ErrorCode.INVALID_REQUEST, request.leader != state.leader),
        (ErrorCode.INVALID_UPDATE_VERSION, request.partition_epoch < 5),
        (ErrorCode.INVALID_REQUEST, unsound),
        (ErrorCode.INVALID_REQUEST, request.recovering and not (len(members) == 1 and state.recovering)),
        (ErrorCode.INELIGIBLE_REPLICA, barred and rules.isr_join_eligibility),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, barred),
    )
    wanted = next((code for code, holds in causes if holds), ErrorCode.NONE)
    if validate(state, request, statuses, rules) is not wanted:
        yield f"{request} of {state} among {statuses}: {validate(state, request, statuses, rules)}, not {wanted}"
    if validate(None, request, statuses, rules) is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        yield "there is no partition, and it is altered"


CHECKS: Final = (_eligible, _moved, _registered, _stray, _altered)


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__.strip("_"))
@given(draws=DRAWS)
def test_a_controller_decides_by_the_facts(check: Callable[..., Iterator[str]], draws: Draws) -> None:
    assert [*check(draws)] == []
