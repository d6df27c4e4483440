"""Model a leader: it answers followers' fetches, accepts and answers writes, and shrinks and expands the ISR.

At most one change of the ISR is pending; AlterPartition is sent again until it is answered or a metadata change
replaces it. A held fetch is answered when data arrive and when its time is over; as in Kafka it counts as a fetch once,
when it arrives. Only data complete it: a new high watermark alone reaches a follower with its next fetch, which is then
answered at once.

Source: Kafka core ReplicaManager, DelayedFetch, DelayedProduce, Partition and DefaultAlterPartitionManager, 4.3.1.
"""

from __future__ import annotations

from typing import Final

from broker.error_codes import ErrorCode
from broker.errors import BrokersideError
from broker.ids import BrokerEpoch, BrokerId, Offset
from broker.values import value
from log.errors import RecordValidationError, StorageError
from replication.roles.messages import (
    CONTROLLER,
    Address,
    AlterPartition,
    AlterPartitionResponse,
    AlterPartitionRetryDue,
    Fetch,
    FetchExpired,
    FetchResponse,
    ListOffsets,
    ListOffsetsResponse,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    Produce,
    ProduceExpired,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.roles.states.replica_role import ReplicaRole
from replication.roles.states.write import (
    APPENDED,
    REFUSALS,
    WRITE_ANSWERS,
    WRITE_TRANSITIONS,
    WriteInput,
    WriteState,
    end_of_write,
)
from replication.rules.alter_partition import Reaction, react
from replication.rules.fetch import FetchAnswer, FollowerFetchHandler, check_leader_epoch, is_sent_at_once
from replication.rules.follower_read import latest_offset
from replication.rules.high_watermark import leader_high_watermark
from replication.rules.isr import lagging, propose_shrink
from replication.rules.partition import LeaderState, PartitionState
from replication.rules.produce import answer_waiting, check_append
from replication.rules.settings import Moment, registered_epoch
from replication.rules.truncation import answer_epoch_end

_NO_ERROR: Final = ErrorCode.NONE
"""The error NONE, looked up once, as the access to an enum member costs as much as making a message."""
_BY_CLASS: Final = {
    "CorruptRecordException": ErrorCode.CORRUPT_MESSAGE,
    "InvalidRecordException": ErrorCode.INVALID_RECORD,
    "InvalidTimestampException": ErrorCode.INVALID_TIMESTAMP,
    "RecordTooLargeException": ErrorCode.MESSAGE_TOO_LARGE,
    "RecordBatchTooLargeException": ErrorCode.RECORD_LIST_TOO_LARGE,
    "OutOfOrderSequenceException": ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    "InvalidProducerEpochException": ErrorCode.INVALID_PRODUCER_EPOCH,
    "InvalidTxnStateException": ErrorCode.INVALID_TXN_STATE,
}
"""The error by which a client hears of an exception of the log."""
_NOTHING_SENT: Final = Offset(-1)


@value
class HeldFetch:
    """Hold a follower's fetch that waits for data (DelayedFetch), and the sender of its answer."""

    fetch: Fetch
    sender: Address


@value
class WaitingWrite:
    """Hold an acks=all write that waits to be committed (DelayedProduce); the write ends at `end_offset`."""

    write: Produce
    sender: Address
    offset: Offset
    end_offset: Offset


def error_of_append(refused: BrokersideError) -> ErrorCode:
    """Return the error that answers a write which the log refuses; UNKNOWN_SERVER_ERROR for what Kafka has none."""
    if isinstance(refused, RecordValidationError):
        return ErrorCode.INVALID_TIMESTAMP if refused.has_invalid_timestamp else ErrorCode.INVALID_RECORD
    name = getattr(refused, "kafka_class", "").rpartition(".")[2]
    return _BY_CLASS.get(name, ErrorCode.UNKNOWN_SERVER_ERROR)


class LeaderRole:
    """Model one partition's leader; each method handles one message and writes answers and timers to an outbox."""

    replica_role: Final = ReplicaRole.LEADING

    def __init__(
        self,
        partition: int,
        state: LeaderState,
        log: ReplicaLog,
        broker_epoch: BrokerEpoch,
        role_settings: RoleSettings,
    ) -> None:
        self.partition = partition
        self.broker_epoch = broker_epoch
        self.state = state
        self.log = log
        self._role_settings = role_settings
        self._fetches = FollowerFetchHandler(role_settings.settings)
        self._held: dict[BrokerId, HeldFetch] = {}
        self._waiting: list[WaitingWrite] = []
        self._attempts = 0
        self._sent_high_watermarks: dict[BrokerId, Offset] = {}
        """The high watermark in the last fetch response to each follower."""

    def begin_session(self, broker_epoch: BrokerEpoch) -> None:
        """Send the broker epoch of a new session in every later request."""
        self.broker_epoch = broker_epoch

    def configure(self, role_settings: RoleSettings) -> None:
        """Take the settings of the partition's topic, which have changed."""
        if role_settings != self._role_settings:
            self._role_settings = role_settings
            self._fetches = FollowerFetchHandler(role_settings.settings)

    # Followers.

    def on_fetch(self, fetch: Fetch, sender: Address, moment: Moment, out: Outbox) -> None:
        """Answer a follower's fetch, or hold it until data arrive or fetch_wait_ms is over."""
        held = self._held.pop(fetch.request.replica, None)
        assert held is None or held.sender.node == sender.node, (held, sender)
        if not self._serve(HeldFetch(fetch, sender), moment, out, may_wait=True, was_held=False):
            self._held[fetch.request.replica] = HeldFetch(fetch, sender)
            out.wake(
                self._role_settings.fetch_wait_ms, FetchExpired(self.partition, fetch.number, fetch.request.replica)
            )

    def on_fetch_expired(self, due: FetchExpired, moment: Moment, out: Outbox) -> None:
        """Answer a fetch that was held for fetch_wait_ms, if it is still held."""
        held = self._held.get(due.follower)
        if held is not None and held.fetch.number == due.number:
            del self._held[due.follower]
            self._serve(held, moment, out, may_wait=False)

    def _serve(self, held: HeldFetch, moment: Moment, out: Outbox, *, may_wait: bool, was_held: bool = True) -> bool:
        fetch, request = held.fetch, held.fetch.request
        outcome = self._fetches.handle(self.state, self.log.state, request, moment, was_held=was_held)
        answer = outcome.answer
        self._learn(outcome.leader, outcome.high_watermark, out)
        records = b""
        if answer.error is _NO_ERROR:
            has_data = answer.diverging is None and request.offset < answer.end_offset
            sent = self._sent_high_watermarks.get(request.replica, _NOTHING_SENT)
            if may_wait and not has_data and not is_sent_at_once(answer, sent, self._role_settings.settings.rules):
                return False
            if has_data:
                records = self.log.read(request.offset, self._role_settings.fetch_bytes_max)
            self._sent_high_watermarks[request.replica] = answer.high_watermark
        out.send(held.sender, FetchResponse(self.partition, fetch.number, answer, records))
        return True

    def on_offsets_for_leader_epoch(self, ask: OffsetsForLeaderEpoch, sender: Address, out: Outbox) -> None:
        """Answer a follower's OffsetsForLeaderEpoch request."""
        rules = self._role_settings.settings.rules
        error, end = answer_epoch_end(self.state, self.log.state, ask.asked, ask.believed, rules)
        out.send(sender, OffsetsForLeaderEpochResponse(self.partition, ask.number, error, end))

    def on_list_offsets(self, ask: ListOffsets, sender: Address, out: Outbox) -> None:
        """Answer ListOffsets: log start and end for a follower, log start and high watermark for a client."""
        error = check_leader_epoch(self.state, ask.believed, self._role_settings.settings.rules)
        log = self.log.state
        end_offset = log.end_offset
        if ask.is_of_client:
            error, end_offset = latest_offset(self.state, log, self._role_settings.settings.rules)
        out.send(sender, ListOffsetsResponse(self.partition, ask.number, error, log.start_offset, end_offset))

    # Clients.

    def on_produce(self, write: Produce, sender: Address, moment: Moment, out: Outbox) -> None:
        """Append or refuse a write; answer acks=1 at once, acks=all once it is committed, acks=0 never."""
        error = self.append(write, sender, moment, out)
        if error is not _NO_ERROR:
            event = REFUSALS.get(error)
            answer = error if event is None else end_of_write(WriteState.RECEIVED, event)
            self._answer(write, sender, answer, out)

    def append(self, write: Produce, sender: Address, moment: Moment, out: Outbox) -> ErrorCode:
        """Append a write and return NONE, its response being sent later; or return the error for a refused write."""
        error = check_append(self.state, write.acks, self._role_settings.settings)
        if error is not _NO_ERROR:
            return error
        try:
            info = self.log.append_as_leader(write.records, self.state.leader_epoch, moment.now_ms)
        except StorageError:
            raise  # The broker loses the directory.
        except BrokersideError as refused:
            return error_of_append(refused)  # Nothing was written.
        self.advance(moment, out)
        end_offset = Offset(info.last_offset + 1)
        event = APPENDED[write.acks]
        write_state = WRITE_TRANSITIONS[WriteState.RECEIVED, event]
        if write_state is WriteState.WAITING:
            self._waiting.append(WaitingWrite(write, sender, info.first_offset, end_offset))
            out.wake(self._role_settings.produce_ms_max, ProduceExpired(self.partition, write.number, sender))
            self._answer_committed(out)
        elif write_state is WriteState.ACKED:
            self._answer(write, sender, WRITE_ANSWERS[event], out, offset=info.first_offset)
        self._release(moment, out)
        return _NO_ERROR

    def on_write_expired(self, due: ProduceExpired, out: Outbox) -> None:
        """Answer REQUEST_TIMED_OUT to a write that was not committed in time."""
        expired = (due.number, due.client)
        for waiting in [each for each in self._waiting if (each.write.number, each.sender) == expired]:
            self._waiting.remove(waiting)
            self._end(waiting, WriteInput.EXPIRED, out)

    # The ISR.

    def on_lag_check(self, moment: Moment, out: Outbox) -> None:
        """Send AlterPartition for a smaller ISR if members lag (maybeShrinkIsr)."""
        removed = lagging(self.state, self.log.log.log_end_offset, moment.now_ms, self._role_settings.settings)
        if removed:
            proposing = propose_shrink(self.state, removed, registered_epoch(moment, self.state.broker))
            self._learn(proposing, self.log.log.high_watermark, out)

    def on_alter_partition_response(self, response: AlterPartitionResponse, moment: Moment, out: Outbox) -> None:
        """Apply the controller's answer to AlterPartition."""
        reaction, self.state = react(self.state, response.request, response.altered)
        if reaction is Reaction.COMMITTED or reaction is Reaction.ROLLED_BACK:
            self.advance(moment, out)
        elif reaction is Reaction.RETRY:
            out.wake(self._role_settings.fetch_backoff_ms, AlterPartitionRetryDue(self.partition, response.request))

    def on_alter_partition_retry(self, due: AlterPartitionRetryDue, out: Outbox) -> None:
        """Send AlterPartition again for a change that is still pending."""
        if self.state.pending == due.request:
            self._send_alter_partition(out)

    def _send_alter_partition(self, out: Outbox) -> None:
        request = self.state.pending
        assert request is not None
        self._attempts += 1
        out.send(Address(CONTROLLER), AlterPartition(self.partition, self._attempts, request, self.broker_epoch))
        out.wake(self._role_settings.answer_ms_max, AlterPartitionRetryDue(self.partition, request))

    # Metadata.

    def renew(self, state: LeaderState, moment: Moment, out: Outbox) -> None:
        """Go on leading with a new state of the partition."""
        self.state = state
        self.advance(moment, out)

    def resign(self, new_state: PartitionState, out: Outbox) -> None:
        """Answer every held fetch and waiting write with the error of a lost leadership."""
        for held in self._held.values():
            answer = FetchAnswer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            checks_epoch = self._role_settings.settings.rules.fetch_epoch_check
            if checks_epoch and held.fetch.request.leader_epoch < new_state.leader_epoch:
                answer = FetchAnswer(error=ErrorCode.FENCED_LEADER_EPOCH)
            out.send(held.sender, FetchResponse(self.partition, held.fetch.number, answer, b""))
        for waiting in self._waiting:
            self._end(waiting, WriteInput.LEADERSHIP_LOST, out)

    def fail(self, event: WriteInput, out: Outbox) -> None:
        """Answer every held fetch and waiting write: the directory has failed, or the topic was deleted."""
        for held in self._held.values():
            answer = FetchAnswer(error=WRITE_ANSWERS[event])
            out.send(held.sender, FetchResponse(self.partition, held.fetch.number, answer, b""))
        for waiting in self._waiting:
            self._end(waiting, event, out)

    def advance(self, moment: Moment, out: Outbox) -> None:
        """Raise the high watermark if the ISR allows it (maybeIncrementLeaderHW), and answer committed writes."""
        high_watermark = leader_high_watermark(self.state, self.log.state, moment, self._role_settings.settings)
        self._learn(self.state, high_watermark, out)

    def _learn(self, state: LeaderState, high_watermark: Offset, out: Outbox) -> None:
        # Whoever gives up a request sets the state: here it is the same one as before, or a new one.
        is_new_request = state.pending is not self.state.pending
        self.state = state
        if high_watermark != self.log.state.high_watermark:
            self.log.set_high_watermark(high_watermark)
            self._answer_committed(out)
        if is_new_request:
            self._send_alter_partition(out)

    def _release(self, moment: Moment, out: Outbox) -> None:
        for follower, held in list(self._held.items()):
            if self._serve(held, moment, out, may_wait=True):
                del self._held[follower]

    def _answer_committed(self, out: Outbox) -> None:
        high_watermark = self.log.state.high_watermark
        for waiting in [each for each in self._waiting if each.end_offset <= high_watermark]:
            self._waiting.remove(waiting)
            error = answer_waiting(self.state, waiting.end_offset, high_watermark, self._role_settings.settings)
            assert error is not None, waiting
            is_enough = error is _NO_ERROR
            self._end(waiting, WriteInput.COMMITTED if is_enough else WriteInput.COMMITTED_BY_TOO_FEW, out)

    def _end(self, waiting: WaitingWrite, event: WriteInput, out: Outbox) -> None:
        """Answer a waiting write with the error that `WRITE_TRANSITIONS` gives for `event`."""
        error = end_of_write(WriteState.WAITING, event)
        self._answer(waiting.write, waiting.sender, error, out, offset=waiting.offset)

    def _answer(
        self, write: Produce, sender: Address, error: ErrorCode, out: Outbox, *, offset: Offset | None = None
    ) -> None:
        if write.acks != 0:
            is_appended = offset is not None
            place = Offset(-1) if offset is None else offset
            out.send(sender, ProduceResponse(self.partition, write.number, write.acks, error, place, is_appended))
