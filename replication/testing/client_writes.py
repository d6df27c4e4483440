"""Record the acknowledged writes of real clients for the checkers, and drop from time to time what is settled.

A record of a client is known by its leader epoch, its offset and its value, as clients may write the same bytes twice.
It is acknowledged once a response went out to the client, and sent when the first attempt of an idempotent producer
arrived: a retry of the same sequence is the same record, whatever became of the response before. Writes with acks=0 are
not noted: nothing is promised to them.

Source: ours; KIP-98 and ProducerStateEntry.findDuplicateBatch (4.4.0) for what is a duplicate.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Final

import attrs

from broker.errors import BrokersideError
from broker.ids import LeaderEpoch, Offset
from broker.units import MINUTE_MS, TimeMs
from log.batches.batch import RecordBatch
from log.batches.in_buffer import batches_in
from replication.checkers import SettlingStepChecker
from replication.checkers.clients import Write
from replication.checkers.observed_log import Decoder
from replication.rules.produce import Fate
from replication.rules.settings import PartitionSettings
from replication.simulation.cluster import Cluster
from replication.testing.gateway import NoteAcknowledged

SETTLE_COUNT: Final = 50_000
"""The records and events after which the checkers forget what is settled."""
_REMEMBERED_BATCHES_MAX: Final = 256
"""The batches that the checkers remember in decoded form; clients' batches are large."""
_IN_FLIGHT_MAX: Final = 5
"""The last batches of a producer that it may send again: max.in.flight.requests.per.connection of an idempotent one."""
_RETRIED_MS_MAX: Final = 10 * MINUTE_MS
"""How long the batches of a silent producer are remembered; no client retries as long (delivery.timeout.ms)."""


def _identity(epoch: int, offset: int, octets: bytes) -> int:
    """Return a 64-bit identity of a record in its partition: by leader epoch, offset and value."""
    return int.from_bytes(blake2b(b"%d %d " % (epoch, offset) + octets, digest_size=8).digest(), "big")


@attrs.define
class _Batch:
    """Hold a batch over all attempts to send it; `values` are the identities of its records that were acknowledged."""

    producer_epoch: int
    base_sequence: int
    record_count: int
    sent_ms: TimeMs = attrs.field(eq=False)
    values: set[int] = attrs.field(factory=set, eq=False)


@attrs.define
class _Producer:
    """Hold the last batches of an idempotent producer in a partition, and when it last sent one."""

    batches: deque[_Batch] = attrs.field(factory=lambda: deque(maxlen=_IN_FLIGHT_MAX))
    heard_ms: int = 0


class ClientWrites:
    """Note the writes to a cluster in its history; `cluster` is set before the first one."""

    cluster: Cluster

    def __init__(self) -> None:
        self._checker: SettlingStepChecker
        self._producers: dict[tuple[int, int], _Producer] = {}
        self._noted_count = 0
        self._settled_events = 0

    def new_checker(self, settings: PartitionSettings) -> SettlingStepChecker:
        """Return the checker of the cluster's steps."""
        self._checker = SettlingStepChecker(settings)
        self._checker.decoder = Decoder(_identity, _REMEMBERED_BATCHES_MAX)
        return self._checker

    def note(self, number: int, acks: int, records: bytes) -> NoteAcknowledged:
        """Note a batch that is sent to a partition; return the function that notes the response to its client."""
        try:
            batches = list(batches_in(records))
            values = [record.value or b"" for batch in batches for record in batch.records()]
        except BrokersideError:
            return _forget  # The log refuses them, too.
        if acks == 0 or len(batches) != 1:
            return _forget
        self._noted_count += len(values)
        batch = self._batch(number, batches[0])

        def note(offset: Offset, epoch: LeaderEpoch) -> None:
            cluster = self.cluster
            for at, octets in enumerate(values, offset):
                value = _identity(epoch, at, octets)
                # The answer to a duplicate is no further record; one that names another place is a promise of its own.
                if value not in batch.values:
                    batch.values.add(value)
                    write = Write(value, number, acks, batch.sent_ms, Fate.ACKED, cluster.now_ms, Offset(at), epoch)
                    cluster.history.writes.append(write)

        return note

    def _batch(self, number: int, sent: RecordBatch) -> _Batch:
        """Return the batch of an earlier attempt with the same sequence, else a new one."""
        now_ms = self.cluster.now_ms
        new = _Batch(sent.producer_epoch, sent.base_sequence, sent.record_count, now_ms)
        if sent.base_sequence < 0:
            return new  # A retry without idempotence is a further record.
        producer = self._producers.setdefault((number, sent.producer_id), _Producer())
        producer.heard_ms = now_ms
        for batch in producer.batches:
            if batch == new:
                return batch
        producer.batches.append(new)
        return new

    def settle(self) -> None:
        """Let the checkers forget what is settled if there is much; a server that runs for days stays small."""
        events, history = self.cluster.event_count, self.cluster.history
        if self._noted_count + events - self._settled_events > SETTLE_COUNT:
            history.writes = self._checker.settle(history.writes)
            silent_ms = self.cluster.now_ms - _RETRIED_MS_MAX
            self._producers = {key: each for key, each in self._producers.items() if each.heard_ms > silent_ms}
            self._noted_count, self._settled_events = 0, events


def _forget(_offset: Offset, _epoch: LeaderEpoch) -> None:
    pass
