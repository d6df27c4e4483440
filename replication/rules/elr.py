"""Decide the eligible leader replicas (ELR): who may lead after the ISR has fallen below min.insync.replicas.

What it decides: with each change of the ISR, which replicas outside it are known to hold every committed record, and
which broker is remembered as the last known leader.

Goals, most important first:
1. Every member of the ELR holds every committed record: the high watermark stands still while the ISR is too small, so
   a replica that was in the ISR then still has everything, until its log loses its end.
2. The last replica in the ISR is not the only one that may lead.

Constraints: with an ISR of min.insync.replicas or more the ELR is empty. A replica that stopped uncleanly may have
lost the end of its log, and leaves the ELR. ISR and ELR have no member in common.

Example: min.insync.replicas is 2 and the ISR falls from (1, 2, 3) to (1,); then 3 restarts uncleanly.

>>> one, two, three = BrokerId(1), BrokerId(2), BrokerId(3)
>>> partition = PartitionState(replicas=(one, two, three), isr=(one, two, three), leader=one)
>>> next_elr(partition, (one,), unclean=(), min_isr=2)
(2, 3)
>>> next_elr(partition, (one,), unclean=(three,), min_isr=2)
(2,)
>>> next_elr(partition, (one, two), unclean=(), min_isr=2)
()

Left out: LastKnownElr as a list of replicas, which Kafka does not keep while it remembers the last leader in its
place; the second part of KIP-966, not released. Nine and more candidates whose ids share a bin of a table of 64, which
Java keeps as a tree.

Source: Kafka metadata PartitionChangeBuilder.maybePopulateTargetElr and maybeUpdateLastKnownLeader, 4.3.1; KIP-966.
Kafka 4.0 noted the last leader as the ISR became empty, 4.1 as the leader is lost. The ELR is in the order of Java's
HashSet of Integer, which tools show: ascending for ids below 16.
"""

from __future__ import annotations

from typing import Final

from broker.ids import NO_LEADER, BrokerId
from replication.rules.partition import PartitionState


def next_elr(
    partition: PartitionState, isr: tuple[BrokerId, ...], unclean: tuple[BrokerId, ...], min_isr: int
) -> tuple[BrokerId, ...]:
    """Return the ELR once the ISR becomes `isr`; `unclean` are replicas known to have stopped uncleanly."""
    if len(isr) >= min_isr:
        return ()
    candidates = _in_hash_set(partition.elr, partition.isr)
    return tuple(broker for broker in candidates if broker not in isr and broker not in unclean)


def next_last_known(partition: PartitionState, written: BrokerId | None) -> tuple[BrokerId, ...]:
    """Return the last known leader after a change that writes `written` as the leader; None if it writes no leader.

    It is noted when the partition loses its leader, and cleared when a leader is elected or confirmed.
    """
    if written == NO_LEADER and not partition.last_known:
        return (partition.leader,)
    return () if written is not None and written != NO_LEADER else partition.last_known


def _in_hash_set(first: tuple[BrokerId, ...], added: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    """Return brokers as a HashSet made from `first` and filled with `added` lists them."""
    brokers = tuple(dict.fromkeys((*first, *added)))
    size = _TABLE_SIZE
    while len(first) * 4 >= 3 * size or len(brokers) * 4 > 3 * size:
        size *= 2
    return tuple(sorted(brokers, key=lambda broker: (broker ^ broker >> 16) & (size - 1)))


_TABLE_SIZE: Final = 16
"""The bins of a new HashSet."""
