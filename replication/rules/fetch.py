"""Decide a leader's answer to a follower's fetch, and what the follower does with the answer.

What it decides: on the leader, in this order: is the request of this leader epoch and to the leader, is the sender a
replica, do the logs diverge, and what does the leader record of the follower. On the follower: its log, high watermark
and log start after the answer.

Goals, most important first:
1. The leader never counts an offset of a log that is not a prefix of its own.
2. A replica that follows in an older or newer leader epoch learns so, and nothing else.
3. Each accepted fetch updates the follower's state at the leader: caught up or not, in the ISR or not, committed to
   where.

Constraints: a refused fetch changes nothing. The leader's end that counts is the one before the read, so that appends
during the read do not make a follower late. The high watermark is looked at again only if the follower's recorded end
offset changed, and the follower may be added to the ISR before that.

How: `decide_fetch` decides without changing anything; a `FollowerFetchHandler` also records the follower's fetch state.
The explorers and the simulated leader ask the same functions.

Example: a leader in epoch 4 (epoch 1 from 0, epoch 4 from 10) gets a fetch at 12 with last fetched epoch 3. Epoch 3 is
answered as epoch 1 ending at 10; 1 is below 3, so the logs diverge and the answer has no records.

>>> from replication.rules.partition import EpochStart, PartitionEpoch
>>> from replication.rules.switches import CURRENT
>>> one, two = BrokerId(1), BrokerId(2)
>>> epochs = (EpochStart(LeaderEpoch(1), Offset(0)), EpochStart(LeaderEpoch(4), Offset(10)))
>>> log = LogState(Offset(0), Offset(15), Offset(9), epochs)
>>> leader = LeaderState(one, LeaderEpoch(4), PartitionEpoch(0), Offset(10), (one, two), (Follower(two),))
>>> request = FetchRequest(
...     replica=two, offset=Offset(12), leader_epoch=LeaderEpoch(4), last_fetched_epoch=LeaderEpoch(3)
... )
>>> answer_fetch(leader, log, request, CURRENT).diverging
EpochEnd(epoch=1, end_offset=10)

Left out: sizes, fetch sessions, quotas and waiting for data; the topic id, as a request of the simulation names its
partition by it; isolation levels, which `follower_read` decides.

Source: Kafka core ReplicaManager.fetchMessages, Partition.fetchRecords, readRecords, updateFollowerFetchState,
Replica.updateFetchStateOrThrow and AbstractFetcherThread.processFetchRequest,
ReplicaFetcherThread.processPartitionData, 4.3.1; KIP-595, KAFKA-12996, KAFKA-13141, KAFKA-14704, KIP-903.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value
from replication.rules.epochs import UNDEFINED_END, end_offset_for
from replication.rules.high_watermark import follower_high_watermark, leader_high_watermark
from replication.rules.isr import may_join, propose_expand
from replication.rules.partition import (
    UNKNOWN_BROKER_EPOCH,
    UNKNOWN_EPOCH,
    UNKNOWN_OFFSET,
    BrokerStatus,
    EpochEnd,
    Follower,
    FollowerState,
    LeaderState,
    LogState,
)
from replication.rules.settings import Moment, PartitionSettings, registered_epoch
from replication.rules.switches import Rules, Truncation
from replication.rules.truncation import cut_for, start_raised, truncated

_NONE: Final = ErrorCode.NONE
"""Looked up once: a member of an enum costs as much as making a value, and this is asked for at every fetch."""


@value(kw_only=True)
class FetchRequest:
    """Hold one partition of a follower's fetch request; -1 is an epoch that the request does not carry."""

    replica: BrokerId
    offset: Offset
    leader_epoch: LeaderEpoch = UNKNOWN_EPOCH
    last_fetched_epoch: LeaderEpoch = UNKNOWN_EPOCH
    start_offset: Offset = UNKNOWN_OFFSET
    broker_epoch: BrokerEpoch = UNKNOWN_BROKER_EPOCH


@value(kw_only=True)
class FetchAnswer:
    """Hold one partition of a fetch response; `diverging` says where the logs diverge, and then there are no records.

    Without an error and without divergence, the records from the requested offset up to `end_offset` may be sent.
    """

    error: ErrorCode = ErrorCode.NONE
    diverging: EpochEnd | None = None
    high_watermark: Offset = UNKNOWN_OFFSET
    start_offset: Offset = UNKNOWN_OFFSET
    end_offset: Offset = UNKNOWN_OFFSET


@value
class FetchDecision:
    """Hold a leader's answer to a follower's fetch, and whether the leader records the follower's fetch state."""

    answer: FetchAnswer
    is_recorded: bool


@value
class FetchOutcome:
    """Hold a leader's answer to a follower's fetch, and the leader's state and high watermark after it.

    The answer carries the high watermark from before the fetch; a higher one reaches the follower with its next fetch.
    """

    answer: FetchAnswer
    leader: LeaderState
    high_watermark: Offset


@value
class _CachedDecision:
    """A decision with the values that it was made from."""

    request: FetchRequest
    log: LogState
    leader_epoch: LeaderEpoch
    brokers: Mapping[BrokerId, BrokerStatus]
    decision: FetchDecision

    def holds(self, leader: LeaderState, log: LogState, request: FetchRequest, moment: Moment) -> bool:
        """Return whether the decision still stands: these values are replaced, never changed in place."""
        return (
            request is self.request
            and log is self.log
            and moment.brokers is self.brokers
            and leader.leader_epoch == self.leader_epoch
        )


def check_leader_epoch(role: LeaderState | FollowerState, leader_epoch: LeaderEpoch, rules: Rules) -> ErrorCode:
    """Return the error for a request that carries `leader_epoch` to the broker in `role`, else NONE."""
    if rules.fetch_epoch_check and leader_epoch != UNKNOWN_EPOCH and leader_epoch != role.leader_epoch:
        stale = leader_epoch < role.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH
    return _NONE if isinstance(role, LeaderState) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def answer_fetch(role: LeaderState | FollowerState, log: LogState, request: FetchRequest, rules: Rules) -> FetchAnswer:
    """Return the answer to a follower's fetch, without a change to the leader's state."""
    error = check_leader_epoch(role, request.leader_epoch, rules)
    if error is not _NONE:
        return FetchAnswer(error=error)
    assert isinstance(role, LeaderState), role
    if role.follower(request.replica) is None:
        # With an epoch the sender is up to date and this leader may be behind: the sender shall retry.
        known = rules.fetch_epoch_check and request.leader_epoch != UNKNOWN_EPOCH
        return FetchAnswer(error=ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    diverging, last = None, request.last_fetched_epoch
    is_of_latest = bool(log.epochs) and log.epochs[-1].epoch == last
    if is_of_latest and request.offset <= log.end_offset:
        # Nearly every fetch: the logs do not part, as the latest epoch ends at the log's end.
        pass
    elif rules.truncation is Truncation.ON_FETCH and last != UNKNOWN_EPOCH:
        end = end_offset_for(log.epochs, last, log.end_offset, rules)
        if end == UNDEFINED_END or (request.offset < log.start_offset and rules.diverging_below_start_refused):
            return FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        if end.epoch < last or end.end_offset < request.offset:
            diverging = end
    if diverging is None and not log.start_offset <= request.offset <= log.end_offset:
        return FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    return FetchAnswer(
        diverging=diverging,
        high_watermark=log.high_watermark,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
    )


def decide_fetch(
    leader: LeaderState, log: LogState, request: FetchRequest, moment: Moment, rules: Rules
) -> FetchDecision:
    """Return the answer to a follower's fetch, and whether the leader records the follower's fetch state.

    The answer is that of `answer_fetch`, unless the request carries the broker epoch of an earlier incarnation.
    """
    answer = answer_fetch(leader, log, request, rules)
    is_recorded = answer.error is _NONE and (answer.diverging is None or not rules.diverging_fetch_ignored)
    if is_recorded and _is_of_former_incarnation(request, moment, rules):
        return FetchDecision(FetchAnswer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), is_recorded=False)
    return FetchDecision(answer, is_recorded)


def is_sent_at_once(answer: FetchAnswer, sent_high_watermark: Offset, rules: Rules) -> bool:
    """Return whether an answer without records goes to the follower without waiting for records.

    So does one that tells it to truncate; and, in 2.4 and 2.5 only, a high watermark above the last one sent to it.
    """
    if answer.diverging is not None:
        return True
    tells_news = rules.follower_reads and not rules.new_high_watermark_waits
    return tells_news and answer.high_watermark > sent_high_watermark


class FollowerFetchHandler:
    """Answer followers' fetches for one leader, and cache the last decision for each follower.

    An idle follower sends the same request again and again. A decision follows from the leader's epoch, its log, the
    request and the registered brokers; while these are the same values, the cached decision stands.
    """

    def __init__(self, settings: PartitionSettings) -> None:
        self._settings = settings
        self._cached: dict[BrokerId, _CachedDecision] = {}

    def handle(
        self, leader: LeaderState, log: LogState, request: FetchRequest, moment: Moment, *, was_held: bool = False
    ) -> FetchOutcome:
        """Return the answer to a follower's fetch, and the leader's follower states, ISR and high watermark after it.

        A fetch that was held is answered, and tells nothing new of its follower, which may be gone. If
        `FetchOutcome.leader.pending` is new, the caller sends that AlterPartition request to the controller.
        """
        before = leader.follower(request.replica)
        if before is None:
            return FetchOutcome(answer_fetch(leader, log, request, self._settings.rules), leader, log.high_watermark)
        cached = self._cached.get(request.replica)
        if cached is None or not cached.holds(leader, log, request, moment):
            decision = decide_fetch(leader, log, request, moment, self._settings.rules)
            cached = _CachedDecision(request, log, leader.leader_epoch, moment.brokers, decision)
            self._cached[request.replica] = cached
        decision = cached.decision
        if was_held or not decision.is_recorded:
            return FetchOutcome(decision.answer, leader, log.high_watermark)
        follower = recorded(before, request, leader.leader_epoch, log.end_offset, moment.now_ms)
        leader = leader.with_follower(follower)
        if may_join(leader, log, follower, moment, self._settings):
            leader = propose_expand(leader, follower.broker, registered_epoch(moment, leader.broker))
        if follower.end_offset == before.end_offset:
            return FetchOutcome(decision.answer, leader, log.high_watermark)
        return FetchOutcome(decision.answer, leader, leader_high_watermark(leader, log, moment, self._settings))


def recorded(
    follower: Follower, request: FetchRequest, leader_epoch: LeaderEpoch, leader_end_offset: Offset, now_ms: TimeMs
) -> Follower:
    """Return a follower's state at its leader after a fetch; `leader_end_offset` is the leader's end before the read.

    The follower was caught up now if it asks for that end, or at its previous fetch if it asks for what was the end
    then: so a follower under steady load, always one batch behind, stays in the ISR
    (Replica.updateFetchStateOrThrow).
    """
    offset, end_before, had_all_at_ms = request.offset, follower.leader_end_offset, follower.caught_up_at_ms
    if offset >= leader_end_offset:
        had_all_at_ms = now_ms
    elif offset >= end_before:
        had_all_at_ms = follower.fetched_at_ms
    return Follower(
        follower.broker,
        offset,
        request.start_offset,
        max(end_before, leader_end_offset),
        now_ms,
        max(follower.caught_up_at_ms, had_all_at_ms),
        request.broker_epoch,
        leader_epoch if request.leader_epoch == UNKNOWN_EPOCH else request.leader_epoch,
    )


def after_answer(log: LogState, answer: FetchAnswer, rules: Rules) -> LogState:
    """Return a follower's log after an answer without error; its records are appended to `log` already."""
    assert answer.error is _NONE, answer
    if answer.diverging is not None:
        if not rules.truncate_before_high_watermark:
            log = _with_high_watermark(log, answer.high_watermark)
        return truncated(log, cut_for(log, answer.diverging, rules).end_offset, rules)
    # The high watermark first: the leader's log start lies at or below it, and is never raised above the follower's.
    return start_raised(_with_high_watermark(log, answer.high_watermark), answer.start_offset)


def _is_of_former_incarnation(request: FetchRequest, moment: Moment, rules: Rules) -> bool:
    if not rules.isr_join_broker_epoch or request.broker_epoch == UNKNOWN_BROKER_EPOCH:
        return False
    status = moment.brokers.get(request.replica)
    return status is not None and not status.fenced and status.epoch > request.broker_epoch


def _with_high_watermark(log: LogState, leader_high_watermark: Offset) -> LogState:
    high_watermark = follower_high_watermark(log, leader_high_watermark)
    if high_watermark == log.high_watermark:
        return log  # As with most answers.
    return LogState(log.start_offset, log.end_offset, high_watermark, log.epochs)
