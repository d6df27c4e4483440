"""Define the states of one write at its leader as a table, and the error that answers each end.

A write is answered once or, with acks=0, never. ACKED, FAILED, UNSURE and UNANSWERED are final.

Source: Kafka core ReplicaManager.appendRecords and DelayedProduce, 4.3.1.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker.error_codes import ErrorCode
from broker.machines import step


class WriteState(enum.Enum):
    """Name the states of a write at its leader."""

    RECEIVED = enum.auto()
    """The write has arrived at the leader."""

    WAITING = enum.auto()
    """The write is appended, and waits in purgatory for the high watermark to pass it."""

    ACKED = enum.auto()
    """The write was answered with NONE."""

    FAILED = enum.auto()
    """The write was refused and is in no log."""

    UNSURE = enum.auto()
    """The write is in the leader's log and was answered with an error; it may be committed or lost."""

    UNANSWERED = enum.auto()
    """The write is in the leader's log and gets no answer, as its acks are 0."""


class WriteInput(enum.Enum):
    """Name the events that change the state of a write."""

    REFUSED_NOT_LEADER = enum.auto()
    """The broker does not lead the partition."""

    REFUSED_TOO_FEW = enum.auto()
    """The write has acks=all and the ISR is smaller than min.insync.replicas."""

    REFUSED_ACKS = enum.auto()
    """The write has acks other than 0, 1 and all."""

    REFUSED_SEQUENCE = enum.auto()
    """The write's sequence does not follow its producer's last sequence."""

    REFUSED_OFFLINE = enum.auto()
    """The replica's log directory failed before the write arrived."""

    REFUSED_UNKNOWN = enum.auto()
    """The broker knows no such topic: not yet, or not any more."""

    APPENDED_FOR_NONE = enum.auto()
    """The write is appended, with acks=0."""

    APPENDED_FOR_ONE = enum.auto()
    """The write is appended, with acks=1."""

    APPENDED_FOR_ALL = enum.auto()
    """The write is appended, with acks=all."""

    COMMITTED = enum.auto()
    """The high watermark has passed the write."""

    COMMITTED_BY_TOO_FEW = enum.auto()
    """The high watermark has passed the write, but the ISR is now smaller than min.insync.replicas."""

    EXPIRED = enum.auto()
    """The write was not committed within the producer's request timeout."""

    LEADERSHIP_LOST = enum.auto()
    """The broker no longer leads the partition."""

    DIRECTORY_LOST = enum.auto()
    """The replica's log directory fails during the append, or while the write waits."""

    TOPIC_DELETED = enum.auto()
    """The partition's topic is deleted."""


_S, _I = WriteState, WriteInput

WRITE_TRANSITIONS: Final[Mapping[tuple[WriteState, WriteInput], WriteState]] = MappingProxyType(
    {
        (_S.RECEIVED, _I.REFUSED_NOT_LEADER): _S.FAILED,
        (_S.RECEIVED, _I.REFUSED_TOO_FEW): _S.FAILED,
        (_S.RECEIVED, _I.REFUSED_ACKS): _S.FAILED,
        (_S.RECEIVED, _I.REFUSED_SEQUENCE): _S.FAILED,
        (_S.RECEIVED, _I.REFUSED_OFFLINE): _S.FAILED,
        (_S.RECEIVED, _I.REFUSED_UNKNOWN): _S.FAILED,
        (_S.RECEIVED, _I.DIRECTORY_LOST): _S.UNSURE,
        (_S.RECEIVED, _I.APPENDED_FOR_NONE): _S.UNANSWERED,
        (_S.RECEIVED, _I.APPENDED_FOR_ONE): _S.ACKED,
        (_S.RECEIVED, _I.APPENDED_FOR_ALL): _S.WAITING,
        (_S.WAITING, _I.COMMITTED): _S.ACKED,
        (_S.WAITING, _I.COMMITTED_BY_TOO_FEW): _S.UNSURE,
        (_S.WAITING, _I.EXPIRED): _S.UNSURE,
        (_S.WAITING, _I.LEADERSHIP_LOST): _S.UNSURE,
        (_S.WAITING, _I.DIRECTORY_LOST): _S.UNSURE,
        (_S.WAITING, _I.TOPIC_DELETED): _S.UNSURE,
    }
)
"""Every step of a write; any other pair is refused and changes nothing."""

WRITE_ANSWERS: Final[Mapping[WriteInput, ErrorCode]] = MappingProxyType(
    {
        _I.REFUSED_NOT_LEADER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        _I.REFUSED_TOO_FEW: ErrorCode.NOT_ENOUGH_REPLICAS,
        _I.REFUSED_ACKS: ErrorCode.INVALID_REQUIRED_ACKS,
        _I.REFUSED_SEQUENCE: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        _I.REFUSED_OFFLINE: ErrorCode.KAFKA_STORAGE_ERROR,
        _I.REFUSED_UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        _I.APPENDED_FOR_ONE: ErrorCode.NONE,
        _I.COMMITTED: ErrorCode.NONE,
        _I.COMMITTED_BY_TOO_FEW: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        _I.EXPIRED: ErrorCode.REQUEST_TIMED_OUT,
        _I.LEADERSHIP_LOST: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        _I.DIRECTORY_LOST: ErrorCode.KAFKA_STORAGE_ERROR,
        _I.TOPIC_DELETED: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The error in the answer to the producer; inputs that are absent send no answer."""

REFUSALS: Final[Mapping[ErrorCode, WriteInput]] = MappingProxyType(
    {WRITE_ANSWERS[event]: event for (_, event), after in WRITE_TRANSITIONS.items() if after is _S.FAILED}
)
"""The input of a write that is not appended, by the error that answers it."""

APPENDED: Final[Mapping[int, WriteInput]] = MappingProxyType(
    {0: _I.APPENDED_FOR_NONE, 1: _I.APPENDED_FOR_ONE, -1: _I.APPENDED_FOR_ALL}
)
"""The input of a write that is appended, by its acks."""


def end_of_write(state: WriteState, event: WriteInput) -> ErrorCode:
    """Return the error that answers a write ended by `event`; raise UsageError if the table has no such step."""
    following = step(WRITE_TRANSITIONS, state, event, what="write")
    assert following is not WriteState.WAITING, (state, event)
    return WRITE_ANSWERS[event]
