"""Count the rare states of a run: states that many runs together must reach, or they prove little.

Counting costs little and does not change a run: it reads sent messages, metadata records and truncations.

Source: Antithesis' "sometimes" assertions; the list is ours.
"""

from __future__ import annotations

import enum
from collections import Counter
from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId
from replication.roles.messages import (
    AlterPartitionResponse,
    BrokerRegistrationResponse,
    ConsumerFetchResponse,
    FetchResponse,
    Message,
    ProduceResponse,
)
from replication.rules.partition import PartitionState


class Rare(enum.Enum):
    """Name the rare states that many runs together must reach."""

    LEADERLESS = "a partition lost its leader and nobody could be elected"
    ELECTED_CLEANLY = "another leader was elected from the ISR"
    ELECTED_FROM_ELR = "a leader was elected from the ELR"
    ELECTED_UNCLEANLY = "a leader was elected that was in neither ISR nor ELR"
    ISR_OF_ONE = "an ISR shrank to its leader"
    ISR_EMPTY = "an ISR became empty"
    MOVED = "a reassignment was completed"
    CHANGE_OVERTAKEN = "metadata made a leader drop its pending AlterPartition request"
    CHANGE_KNOWN_BY_NEWS = "a leader learned by metadata that its change of the ISR was made, before the answer"
    ISR_INELIGIBLE = "a change of the ISR was refused for an ineligible replica (107)"
    ISR_OUTDATED = "a change of the ISR was refused as outdated (95)"
    ISR_FENCED = "a change of the ISR was refused to a deposed leader (74)"
    ISR_STALE_BROKER = "a change of the ISR was refused to a former incarnation of its broker (77)"
    ISR_MOVED_LEADER = "a change of the ISR was answered with another leader (108)"
    FETCH_FENCED = "a fetch of an older epoch was refused (74)"
    FETCH_UNKNOWN = "a fetch of a newer epoch, or by a stranger, was refused (75)"
    FETCH_OUT_OF_RANGE = "a follower fetched out of range (1)"
    DIVERGED = "a follower was told that the logs part"
    CUT_BELOW_HIGH_WATERMARK = "a follower cut its log below its own high watermark"
    WRITE_UNDER_MIN_ISR = "a write was refused for too small an ISR (19)"
    WRITE_AFTER_APPEND = "a write was committed while the ISR was too small (20)"
    WRITE_TIMED_OUT = "a write was not committed in time (7)"
    WRITE_DEPOSED = "a leader lost its partition while a write waited (6)"
    WRITE_OUT_OF_ORDER = "an idempotent write came out of order (45)"
    READ_NOT_AVAILABLE = "a consumer was told to wait for the high watermark (78)"
    READ_OUT_OF_RANGE = "a consumer had to find a new place (1)"
    REGISTRATION_REFUSED = "a broker had to wait for its former session to end (101)"


_NONE: Final = ErrorCode.NONE
_SHOWN: Final[dict[type, dict[ErrorCode, Rare]]] = {
    AlterPartitionResponse: {
        ErrorCode.INELIGIBLE_REPLICA: Rare.ISR_INELIGIBLE,
        ErrorCode.INVALID_UPDATE_VERSION: Rare.ISR_OUTDATED,
        ErrorCode.FENCED_LEADER_EPOCH: Rare.ISR_FENCED,
        ErrorCode.STALE_BROKER_EPOCH: Rare.ISR_STALE_BROKER,
        ErrorCode.NEW_LEADER_ELECTED: Rare.ISR_MOVED_LEADER,
    },
    FetchResponse: {
        ErrorCode.FENCED_LEADER_EPOCH: Rare.FETCH_FENCED,
        ErrorCode.UNKNOWN_LEADER_EPOCH: Rare.FETCH_UNKNOWN,
        ErrorCode.OFFSET_OUT_OF_RANGE: Rare.FETCH_OUT_OF_RANGE,
    },
    ProduceResponse: {
        ErrorCode.NOT_ENOUGH_REPLICAS: Rare.WRITE_UNDER_MIN_ISR,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Rare.WRITE_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT: Rare.WRITE_TIMED_OUT,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Rare.WRITE_OUT_OF_ORDER,
    },
    ConsumerFetchResponse: {
        ErrorCode.OFFSET_NOT_AVAILABLE: Rare.READ_NOT_AVAILABLE,
        ErrorCode.OFFSET_OUT_OF_RANGE: Rare.READ_OUT_OF_RANGE,
    },
}


class RareStates:
    """Count how many times a run was in each rare state."""

    def __init__(self) -> None:
        self.seen: Counter[Rare] = Counter()

    def note_sent(self, message: Message) -> None:
        """Count the rare state that an answer shows, if it shows one."""
        error = _NONE
        if isinstance(message, ProduceResponse | ConsumerFetchResponse):
            error = message.error
        elif isinstance(message, FetchResponse):
            error = message.answer.error
        elif isinstance(message, AlterPartitionResponse):
            error = message.altered.error
        found = None if error is _NONE else _SHOWN[type(message)].get(error)
        if isinstance(message, ProduceResponse) and message.appended and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            found = Rare.WRITE_DEPOSED
        elif isinstance(message, FetchResponse) and error is _NONE and message.answer.diverging is not None:
            found = Rare.DIVERGED
        elif isinstance(message, BrokerRegistrationResponse) and message.epoch is None:
            found = Rare.REGISTRATION_REFUSED
        if found is not None:
            self.seen[found] += 1

    def note_record(self, before: PartitionState, after: PartitionState, proposed: tuple[BrokerId, ...] = ()) -> None:
        """Count the rare states in a partition change; `proposed` is the ISR requested by the leader."""
        if after.leader != before.leader:
            if after.leader == NO_LEADER:
                self.seen[Rare.LEADERLESS] += 1
            elif after.leader in before.isr or after.leader in proposed:
                self.seen[Rare.ELECTED_CLEANLY] += 1
            else:
                self.seen[Rare.ELECTED_FROM_ELR if after.leader in before.elr else Rare.ELECTED_UNCLEANLY] += 1
        if len(after.isr) < len(before.isr) and len(after.isr) <= 1:
            self.seen[Rare.ISR_OF_ONE if after.isr else Rare.ISR_EMPTY] += 1
        if before.is_reassigning and not after.is_reassigning:
            self.seen[Rare.MOVED] += 1
