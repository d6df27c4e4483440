"""Read the committed records of a partition from its leader's log.

Constraints: without a leader, or while its broker is down, there are no records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.ids import Offset
from broker.units import SizeBytes
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.record import Record
from replication.simulation.cluster import Cluster

_READ_BYTES: Final = SizeBytes(1 << 26)


def end_of(cluster: Cluster, number: int) -> Offset:
    """Return the high watermark of a partition's leader; 0 without a leader."""
    log = _leader_log(cluster, number)
    return Offset(0) if log is None else log.high_watermark


def records_of(cluster: Cluster, number: int) -> Iterator[Record]:
    """Yield the committed records of a partition."""
    log = _leader_log(cluster, number)
    offset = Offset(0) if log is None else log.log_start_offset
    while log is not None and offset < log.high_watermark:
        for batch in batches_in(bytes(log.read(offset, _READ_BYTES).records)):
            yield from batch.records()
            offset = batch.next_offset


def values_of(cluster: Cluster, number: int) -> tuple[bytes, ...]:
    """Return the values of the committed records of a partition."""
    return tuple(record.value or b"" for record in records_of(cluster, number))


def _leader_log(cluster: Cluster, number: int) -> PartitionLog | None:
    state = cluster.controller.image.partitions.get(number)
    if state is None or not state.has_leader:
        return None
    log = cluster.nodes[state.leader].logs.get(number)
    return None if log is None else log.log
