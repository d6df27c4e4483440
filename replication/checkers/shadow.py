"""What the checkers know of one replica's log, read from its bytes.

It decides how far a replica agrees with what is committed. A shadow follows a log by reading what was appended and
noting what was cut; it never asks the model what a log should hold.

Constraints: reading is incremental: each record is read once on each replica.

Example: committed (a, b, c), log (a, b, x): `agreed` is 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from broker.ids import Offset
from log.batches import batches_in
from replication.roles.replica_log import ReplicaLog

CHUNK_BYTES = 1 << 20


@attrs.frozen
class Entry:
    """One record: the leader epoch it was written in, its value, and its producer's id and sequence."""

    epoch: int
    value: int
    producer_id: int = -1
    sequence: int = -1


class Shadow:
    """One replica's log in one life of its broker."""

    def __init__(self, log: ReplicaLog, life: int) -> None:
        self.log = log
        self.life = life
        self.entries: list[Entry] = []
        self.agreed = 0
        """How many of the first entries are known to be those that are committed."""
        self.version = -1
        self.high_watermark = 0

    def read_on(self) -> Iterator[tuple[int, Entry]]:
        """Take over what was cut and yield what was appended since, with offsets."""
        cut_to = self.log.cut_to
        if cut_to is not None:
            del self.entries[cut_to:]
            self.agreed = min(self.agreed, cut_to)
            self.log.seen()
        self.version = self.log.version
        self.high_watermark = self.log.log.high_watermark
        while len(self.entries) < self.log.log.log_end_offset:
            before = len(self.entries)
            data = self.log.log.read(Offset(before), CHUNK_BYTES).records
            for batch in batches_in(data):
                for record in batch.records():
                    entry = Entry(
                        batch.partition_leader_epoch,
                        int.from_bytes(record.value or b"", "big"),
                        batch.producer_id,
                        record.sequence,
                    )
                    assert record.offset == len(self.entries), (record.offset, len(self.entries))
                    self.entries.append(entry)
                    yield record.offset, entry
            assert len(self.entries) > before, before

    def agree(self, committed: list[Entry]) -> int:
        """Return how many of the first entries are those that are committed. Cost: linear in what is new."""
        entries, agreed = self.entries, min(self.agreed, len(committed))
        end = min(len(entries), len(committed))
        while agreed < end and entries[agreed] == committed[agreed]:
            agreed += 1
        self.agreed = agreed
        return agreed
