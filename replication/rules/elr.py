"""Eligible leader replicas: who may lead after the ISR has fallen below min.insync.replicas.

It decides, with each change of the ISR, which replicas outside it are known to hold everything that was committed.

Goals, most important first
1. Every member holds all that is committed: the high watermark stands still while the ISR is too small, so who was in
   the ISR at the fall still has everything, until its log loses its end.
2. The last replica standing is not the only one that may lead.

Constraints: with an ISR of min.insync.replicas or more there is no ELR. A replica that stopped uncleanly may
have lost the end of its log, and is out. ISR and ELR have no member in common.

Worked example: min ISR 2; the ISR goes from (1, 2, 3) to (1,): the ELR is (2, 3). 3 comes back after a power loss:
(2,). The ISR grows to (1, 2): no ELR.

Left out: the record of former eligible replicas, which Kafka does not keep while it remembers the last
leader in its place; the second part of KIP-966, not released.

Source: Kafka metadata PartitionChangeBuilder.maybePopulateTargetElr and maybeUpdateLastKnownLeader, 4.1.1; KIP-966.
Kafka 4.0 noted the last leader as the ISR became empty, 4.1 as the leader is lost. Kafka keeps the ELR in the
order of a hash set of small integers; here it is ascending.
"""

from __future__ import annotations

from broker.ids import NO_LEADER, BrokerId
from replication.rules.partition import PartitionState


def next_elr(
    partition: PartitionState, isr: tuple[BrokerId, ...], unclean: tuple[BrokerId, ...], min_isr: int
) -> tuple[BrokerId, ...]:
    """Return the ELR once the ISR becomes `isr`; `unclean` are replicas known to have stopped uncleanly."""
    if len(isr) >= min_isr:
        return ()
    candidates = {*partition.elr, *partition.isr}
    return tuple(sorted(candidates.difference(isr, unclean)))


def next_last_known(partition: PartitionState, written: BrokerId | None) -> tuple[BrokerId, ...]:
    """Return who is remembered as last leader after a change that writes `written` as leader, None for no word of it.

    It is noted as the partition loses its leader, and forgotten as it gets one, or confirms its own.
    """
    if written == NO_LEADER and not partition.last_known:
        return (partition.leader,)
    return () if written is not None and written != NO_LEADER else partition.last_known
