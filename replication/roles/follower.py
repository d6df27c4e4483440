"""Model a follower: it makes its log a prefix of its leader's log, and keeps it one.

The log's end is the offset of the pending request, as nothing else writes to the log meanwhile. A follower that was
fenced in its present leader epoch waits for a metadata change (it is PARKED).

Source: Kafka core AbstractFetcherThread and ReplicaFetcherThread, 4.3.1.
"""

from __future__ import annotations

from typing import Final

from broker.error_codes import ErrorCode
from broker.errors import CorruptDataError
from broker.ids import NO_LEADER, BrokerEpoch, LeaderEpoch
from broker.machines import step
from broker.units import DurationMs
from replication.roles.messages import (
    Address,
    Fetch,
    FetchDue,
    FetchResponse,
    ListOffsets,
    ListOffsetsResponse,
    NodeId,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.roles.states.replica_role import REPLICA_ROLE_TRANSITIONS, ReplicaRole, ReplicaRoleInput
from replication.rules.epochs import latest_epoch
from replication.rules.fetch import FetchRequest, after_answer
from replication.rules.leadership import Following
from replication.rules.partition import UNKNOWN_OFFSET, FollowerState, LogState
from replication.rules.settings import Moment
from replication.rules.truncation import (
    FencedReaction,
    FirstStep,
    cut_for,
    first_step,
    may_apply,
    on_fenced,
    out_of_range,
)

# Looked up once: a member of an enum costs as much as making a message, and these are asked for at every fetch.
_NO_ERROR: Final = ErrorCode.NONE
_FETCHING: Final = ReplicaRole.FETCHING
_TRUNCATING: Final = ReplicaRole.TRUNCATING
_PARKED: Final = ReplicaRole.PARKED
_RETRY: Final = ReplicaRoleInput.RETRY

_EPOCH_BITS: Final = 32

_NEWS: Final = {
    FirstStep.CUT_TO_HIGH_WATERMARK: ReplicaRoleInput.MAKE_FOLLOWER_FETCHING,
    FirstStep.ASK_EPOCH_END: ReplicaRoleInput.MAKE_FOLLOWER_TRUNCATING,
    FirstStep.FETCH: ReplicaRoleInput.MAKE_FOLLOWER_FETCHING,
}


class FollowerRole:
    """Model one partition's follower; each method handles one message and writes requests and timers to an outbox.

    `replica_role` moves only as `REPLICA_ROLE_TRANSITIONS` says; an answer to a request that is not pending is dropped.
    """

    def __init__(
        self,
        partition: int,
        state: FollowerState,
        log: ReplicaLog,
        broker_epoch: BrokerEpoch,
        role_settings: RoleSettings,
    ) -> None:
        self.partition = partition
        self.broker_epoch = broker_epoch
        self.state = state
        self.log = log
        self.replica_role = ReplicaRole.NONE
        self._role_settings = role_settings
        self._patience_ms = DurationMs(role_settings.fetch_wait_ms + role_settings.answer_ms_max)
        # Answers to this broker's earlier follower roles of the partition, which may still come, have lower numbers.
        self._number = max(state.leader_epoch, 0) << _EPOCH_BITS
        self._sent_offset = UNKNOWN_OFFSET
        self._prepare_request(log.state)

    def follow(self, following: Following, moment: Moment, out: Outbox) -> None:
        """Apply a new follower state; in a new leader epoch, find the place in the leader's log again."""
        self.state = following.state
        if following.restarts:
            self._restart(moment, out)

    def _restart(self, moment: Moment, out: Outbox) -> None:
        if self.state.leader == NO_LEADER:
            self._move(ReplicaRoleInput.LEADER_UNKNOWN)
            return
        # The log may have diverged under the old leader. Until the answer to the first question, nothing is appended.
        begin = first_step(self.log.state, self._role_settings.settings.rules)
        if begin is FirstStep.CUT_TO_HIGH_WATERMARK:
            self.log.cut(self.log.state.high_watermark, moment.now_ms)
        self._move(_NEWS[begin])
        self._ask(out)

    def _move(self, event: ReplicaRoleInput) -> None:
        self.replica_role = step(REPLICA_ROLE_TRANSITIONS, self.replica_role, event, what="follower")

    def on_fetch_due(self, due: FetchDue, out: Outbox) -> None:
        """Send the request again if it was not answered, or its answer said to wait."""
        if due.number == self._number and (self.replica_role, _RETRY) in REPLICA_ROLE_TRANSITIONS:
            self._move(_RETRY)
            self._ask(out)

    def _ask(self, out: Outbox) -> None:
        self._number += 1
        log = self.log.state
        self._sent_offset = log.end_offset
        if self.replica_role is _TRUNCATING:
            asked = latest_epoch(log.epochs)
            ask = OffsetsForLeaderEpoch(self.partition, self._number, asked, self.state.leader_epoch)
            out.send(Address(NodeId(self.state.leader)), ask)
        else:
            if log is not self._asked_log or self.state is not self._asked_state:
                self._prepare_request(log)
            out.send(self._leader, Fetch(self.partition, self._number, self._request))
        out.wake(self._patience_ms, FetchDue(self.partition, self._number))

    def begin_session(self, broker_epoch: BrokerEpoch) -> None:
        """Send the broker epoch of a new session in every later request."""
        self.broker_epoch = broker_epoch
        self._prepare_request(self.log.state)

    def _prepare_request(self, log: LogState) -> None:
        """Make the fetch request that an idle follower sends again and again until its log or state changes."""
        self._asked_log, self._asked_state = log, self.state
        self._leader = Address(NodeId(self.state.leader))
        self._request = FetchRequest(
            replica=self.state.broker,
            offset=log.end_offset,
            leader_epoch=self.state.leader_epoch,
            last_fetched_epoch=latest_epoch(log.epochs),
            start_offset=log.start_offset,
            broker_epoch=self.broker_epoch,
        )

    def on_fetch_response(self, response: FetchResponse, moment: Moment, out: Outbox) -> None:
        """Apply the leader's answer to the pending fetch: append, truncate, or wait."""
        if self.replica_role is not _FETCHING or not self._is_awaited(response.number):
            return
        answer = response.answer
        if answer.error is not _NO_ERROR:
            self._on_error(answer.error, out)
            return
        # An answer is late if metadata or a later answer moved the log's end since the request (`_is_awaited`), so that
        # these records follow the log's last one.
        if response.records and not self._append(response.records, moment, out):
            return
        # The rule decides what the log is after the answer; what follows makes the log so.
        after = after_answer(self.log.state, answer, self._role_settings.settings.rules)
        if answer.diverging is not None:
            self.log.cut(after.end_offset, moment.now_ms)
        self.log.set_high_watermark(after.high_watermark)
        self.log.raise_start(after.start_offset)
        self._ask(out)

    def _append(self, records: bytes, moment: Moment, out: Outbox) -> bool:
        """Append the leader's records; if they are corrupt, return False and fetch them again later."""
        try:
            self.log.append_as_follower(records, moment.now_ms)
        except CorruptDataError:
            out.wake(self._role_settings.fetch_backoff_ms, FetchDue(self.partition, self._number))
            return False
        return True

    def on_offsets_for_leader_epoch_response(
        self, response: OffsetsForLeaderEpochResponse, moment: Moment, out: Outbox
    ) -> None:
        """Truncate the log to the leader's answer; ask again if it named an earlier epoch."""
        if self.replica_role is not ReplicaRole.TRUNCATING or not self._is_awaited(response.number):
            return
        if response.error is not ErrorCode.NONE:
            self._on_error(response.error, out)
            return
        cut = cut_for(self.log.state, response.end, self._role_settings.settings.rules)
        self.log.cut(cut.end_offset, moment.now_ms)
        self._move(ReplicaRoleInput.EPOCH_END_FOUND if cut.complete else ReplicaRoleInput.EPOCH_END_EARLIER)
        self._ask(out)

    def on_list_offsets_response(self, response: ListOffsetsResponse, moment: Moment, out: Outbox) -> None:
        """Truncate the log, or start it anew, after OFFSET_OUT_OF_RANGE; then fetch."""
        if self.replica_role is not ReplicaRole.PLACING or not self._is_awaited(response.number):
            return
        if response.error is not ErrorCode.NONE:
            self._on_error(response.error, out)
            return
        found = out_of_range(self.log.state, response.start_offset, response.end_offset)
        if found.cut_to is not None:
            self.log.cut(found.cut_to, moment.now_ms)
        elif found.starts_anew:
            self.log.start_anew(found.fetch_offset, moment.now_ms)
        self._move(ReplicaRoleInput.OFFSETS_LISTED)
        self._ask(out)

    def _is_awaited(self, number: int) -> bool:
        if number != self._number:
            return False
        return may_apply(self._sent_offset, self.log.state.end_offset, parked=self.replica_role is _PARKED)

    def _on_error(self, error: ErrorCode, out: Outbox) -> None:
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            # A question of an older epoch has an older number, so it was of the present one.
            requested: LeaderEpoch = self.state.leader_epoch
            assert on_fenced(requested, self.state.leader_epoch) is FencedReaction.PARK, self.state
            self._move(ReplicaRoleInput.FENCED)
        elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
            # A new number makes the pending fetch late: only the answer to ListOffsets counts from here on.
            self._number += 1
            self._move(ReplicaRoleInput.OUT_OF_RANGE)
            ask = ListOffsets(self.partition, self._number, self.state.leader_epoch)
            out.send(Address(NodeId(self.state.leader)), ask)
            out.wake(self._role_settings.answer_ms_max, FetchDue(self.partition, self._number))
        else:
            out.wake(self._role_settings.fetch_backoff_ms, FetchDue(self.partition, self._number))
