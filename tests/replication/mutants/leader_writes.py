"""Compare what a leader proposes, commits and acknowledges with what a plain list of facts says.

What it decides: for a drawn case who lags and why, who may join the ISR, the high watermark, and a write's fate.

Source: Kafka's Partition (isReplicaIsrEligible, maybeIncrementLeaderHW, getOutOfSyncReplicas) and DelayedProduce;
KIP-207, 497, 841, 903, 966.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, Offset
from replication.rules.high_watermark import follower_high_watermark, leader_high_watermark
from replication.rules.isr import lagging, maximal_isr, may_join, propose_expand, propose_shrink
from replication.rules.out_of_sync import out_of_sync
from replication.rules.partition import (
    Follower,
    FollowerState,
    PartitionEpoch,
)
from replication.rules.produce import Fate, answer_waiting, check_append, fate
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.leader_cases import EPOCH, LAG_MS, NOW_MS, Case


def in_sync(draws: Draws, case: Case) -> Iterator[str]:
    """Yield who leaves or joins the ISR without reason, or has the wrong reason to be outside."""
    leader, log, rules = case.leader, case.log, case.settings.rules
    late = [each.broker for each in leader.followers if not case.is_caught_up(each)]
    wanted = [] if leader.pending is not None else [broker for broker in leader.isr if broker in late]
    if list(lagging(leader, log.end_offset, NOW_MS, case.settings)) != wanted:
        yield f"{lagging(leader, log.end_offset, NOW_MS, case.settings)} lag"
    for each in leader.followers:
        doubts = {
            "a change is pending": leader.pending is not None,
            "it is in": each.broker in leader.isr,
            "it lacks what is committed": each.end_offset < log.high_watermark,
            "it lacks what the last leader had": rules.isr_join_epoch_start
            and each.end_offset < leader.epoch_start_offset,
            "it is of another epoch": rules.isr_join_epoch_check and each.leader_epoch != leader.leader_epoch,
            "its broker may not": not case.is_eligible(each),
            "it would be dropped in turn": rules.isr_join_caught_up_under_min_isr
            and len(leader.isr) < case.min_isr
            and not case.is_caught_up(each),
        }
        told = may_join(leader, log, each, case.moment, case.settings)
        if told == any(doubts.values()):
            yield f"{each.broker} may join: {told}, {[doubt for doubt, holds in doubts.items() if holds]}"
    if set(maximal_isr(leader, rules)) != case.counted():
        yield f"the maximal ISR is {maximal_isr(leader, rules)}"
    outside = [each for each in leader.followers if each.broker not in leader.isr]
    told_outside = out_of_sync(leader, log, case.moment, case.settings)
    facts = [(each.broker, *_why(case, each)) for each in outside]
    if [(each.broker, each.why.name, each.lag_records, each.lag_ms) for each in told_outside] != facts:
        yield f"outside are {told_outside}, by the facts {facts}"


def _why(case: Case, follower: Follower) -> tuple[str, int | None, int | None]:
    """Return why a follower is outside, and how far behind it is in records and ms."""
    status = case.status(follower.broker)
    has_fetched = follower.end_offset >= 0
    reasons = {
        "UNREGISTERED": status is None,
        "FENCED": status is not None and status.fenced,
        "STOPPING": status is not None and status.shutting_down,
        "NOT_FETCHED": not has_fetched,
        "RESTARTED": status is not None and follower.broker_epoch not in (-1, status.epoch),
        "JOINING": case.is_caught_up(follower),
        "STUCK": follower.fetched_at_ms + LAG_MS < NOW_MS,
        "SLOW": True,
    }
    why = next(name for name, holds in reasons.items() if holds)
    lag_ms = NOW_MS - follower.caught_up_at_ms if follower.caught_up_at_ms else None
    return why, case.log.end_offset - follower.end_offset if has_fetched else None, lag_ms


def proposals(draws: Draws, case: Case) -> Iterator[str]:
    """Yield what an AlterPartition request asks for other than one change of the ISR."""
    leader, own = attrs.evolve(case.leader, pending=None), BrokerEpoch(draws.number(7, 8))
    known = {each.broker: each.broker_epoch for each in leader.followers} | {leader.broker: own}
    outside = [each.broker for each in leader.followers if each.broker not in leader.isr]
    removed = draws.some(leader.isr[1:])
    asked = {tuple(broker for broker in leader.isr if broker not in removed): propose_shrink(leader, removed, own)}
    if outside:
        added = draws.one(outside)
        asked[(*leader.isr, added)] = propose_expand(leader, added, own)
    for isr, proposing in asked.items():
        request = proposing.pending
        assert request is not None
        members = [(broker, -1 if known[broker] is None else known[broker]) for broker in isr]
        if [(each.broker, each.epoch) for each in request.isr] != members or request.recovering:
            yield f"to come to {isr} it asks for {request}"
        from_where = (request.leader, request.leader_epoch, request.partition_epoch)
        if from_where != (leader.broker, leader.leader_epoch, leader.partition_epoch):
            yield f"it asks as {from_where}"
        if attrs.evolve(proposing, pending=None) != leader:
            yield f"to ask changes it to {proposing}"


def committed(draws: Draws, case: Case) -> Iterator[str]:
    """Yield a high watermark that not all who count have reached, or that stands lower than it may."""
    leader, log, rules = case.leader, case.log, case.settings.rules
    counted = case.counted()
    joins = [
        each
        for each in leader.followers
        if each.broker not in counted
        and case.is_caught_up(each)
        and (case.is_eligible(each) or not rules.high_watermark_ignores_ineligible)
    ]
    members = [each for each in leader.followers if each.broker in counted]
    reached = min([log.end_offset, *(each.end_offset for each in (*members, *joins))])
    is_frozen = rules.strict_min_isr and len(leader.isr) < case.min_isr
    if rules.high_watermark_epoch_check and any(each.leader_epoch != EPOCH for each in members):
        is_frozen = True
    wanted = log.high_watermark if is_frozen or reached < log.high_watermark else reached
    told = leader_high_watermark(leader, log, case.moment, case.settings)
    if told != wanted:
        yield f"up to {told} is committed, and {wanted} was reached"
    heard = Offset(draws.number(0, log.end_offset + 3))
    bounds = sorted((log.start_offset, heard, log.end_offset))
    if follower_high_watermark(log, heard) != bounds[1]:
        yield f"a follower that hears of {heard} is at {follower_high_watermark(log, heard)}"


def writes(draws: Draws, case: Case) -> Iterator[str]:
    """Yield a write that is taken, refused or answered otherwise than acks and min.insync.replicas say."""
    leader, log, acks = case.leader, case.log, draws.one((-2, -1, 0, 1, 2))
    follows = FollowerState(
        broker=BrokerId(0), leader=BrokerId(1), leader_epoch=EPOCH, partition_epoch=PartitionEpoch(0)
    )
    is_few = acks == -1 and len(leader.isr) < case.min_isr
    refused = ErrorCode.NOT_ENOUGH_REPLICAS if is_few else ErrorCode.NONE
    for role, wanted in ((leader, refused), (follows, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        told = check_append(role, acks, case.settings)
        if told is not (wanted if acks in (-1, 0, 1) else ErrorCode.INVALID_REQUIRED_ACKS):
            yield f"acks={acks} is answered {told}"
    end = Offset(draws.number(0, log.end_offset))
    answered = answer_waiting(leader, end, log.high_watermark, case.settings)
    few = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if len(case.counted()) < case.min_isr else ErrorCode.NONE
    if answered is not (few if end <= log.high_watermark else None):
        yield f"a write up to {end} is answered {answered}"
    if answer_waiting(follows, end, log.high_watermark, case.settings) is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        yield "a follower answers a write that waits"
    code, appended = draws.one((None, *ErrorCode)), draws.is_one_in(2)
    definite = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_REQUIRED_ACKS}
    appended = appended and code not in definite
    before = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    known = Fate.FAILED if code in definite | (set() if appended else before) else Fate.UNKNOWN
    if fate(code, appended=appended) is not (Fate.ACKED if code is ErrorCode.NONE else known):
        yield f"{code}, appended {appended}, is {fate(code, appended=appended)}"
