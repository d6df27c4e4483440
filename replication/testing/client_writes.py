"""Note what clients wrote to a served cluster, for the checkers, and let these forget now and then what is settled.

A record of a client is known by its leader epoch, its offset and its value, as clients may write the same bytes twice.
Writes with acks=0 are not noted: nothing is promised to them.

Source: ours.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from broker.error_codes import ErrorCode
from broker.errors import BrokersideError
from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from log.batches.in_buffer import batches_in
from replication.checkers import SettlingStepChecker
from replication.checkers.observed_log import Decoder
from replication.rules.produce import Fate
from replication.rules.settings import PartitionSettings
from replication.simulation.cluster import Cluster
from replication.testing.gateway import NoteResponse

SETTLE_COUNT: Final = 50_000
"""The records and events after which the checkers forget what is settled."""
_REMEMBERED_BATCHES_MAX: Final = 256
"""The batches that the checkers remember in decoded form; clients' batches are large."""


def _identity(epoch: int, offset: int, octets: bytes) -> int:
    """Return a 64-bit identity of a record in its partition: by leader epoch, offset and value."""
    return int.from_bytes(blake2b(b"%d %d " % (epoch, offset) + octets, digest_size=8).digest(), "big")


class ClientWrites:
    """Note the writes to a cluster in its history; `cluster` is set before the first one."""

    cluster: Cluster

    def __init__(self) -> None:
        self._checker: SettlingStepChecker
        self._noted_count = 0
        self._settled_events = 0

    def new_checker(self, settings: PartitionSettings) -> SettlingStepChecker:
        """Return the checker of the cluster's steps."""
        self._checker = SettlingStepChecker(settings)
        self._checker.decoder = Decoder(_identity, _REMEMBERED_BATCHES_MAX)
        return self._checker

    def note(self, number: int, acks: int, records: bytes, now_ms: TimeMs) -> NoteResponse:
        """Note a batch that is sent to a partition; return what notes the response."""
        history, sent_ms = self.cluster.history, self.cluster.now_ms
        if acks == 0:
            return _forget
        try:
            sent = [record for batch in batches_in(records) for record in batch.records()]
        except BrokersideError:
            sent = []  # The log refuses them, too.
        writes = [history.write(number, acks, sent_ms) for _ in sent]
        self._noted_count += len(writes)

        def note(error: ErrorCode, offset: Offset, epoch: LeaderEpoch) -> None:
            for place, (write, record) in enumerate(zip(writes, sent, strict=True)):
                # A client that gets an error may write the batch again: nothing failed for certain.
                write.fate = Fate.ACKED if error is ErrorCode.NONE else Fate.UNKNOWN
                write.answered_ms = self.cluster.now_ms
                write.offset = Offset(offset + place if offset >= 0 else -1)
                write.epoch = epoch
                write.value = _identity(epoch, write.offset, record.value or b"")

        return note

    def settle(self) -> None:
        """Let the checkers forget what is settled if there is much; a server that runs for days stays small."""
        events, history = self.cluster.event_count, self.cluster.history
        if self._noted_count + events - self._settled_events > SETTLE_COUNT:
            history.writes = self._checker.settle(history.writes, self.cluster.now_ms)
            self._noted_count, self._settled_events = 0, events


def _forget(_error: ErrorCode, _offset: Offset, _epoch: LeaderEpoch) -> None:
    pass
