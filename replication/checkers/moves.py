"""Check how reassignments end: with the ordered replicas once the added ones are in sync (I26), or as before (I32).

The replicas that a cancellation must restore are noted from the records before the move; what the state lists as added
is not asked. An order in the place of another counts from the replicas of that one, unless it adds nobody.

Source: Kafka metadata PartitionReassignmentReplicas and PartitionReassignmentRevert, 4.3.1; KIP-455.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.ids import BrokerId
from replication.checkers.elections import Cause
from replication.rules.partition import PartitionState
from replication.rules.settings import PartitionSettings


class MoveChecker:
    """Keep the replicas that each partition had before its reassignment in progress."""

    def __init__(self, settings: PartitionSettings) -> None:
        self._settings = settings
        self._former: dict[int, frozenset[BrokerId]] = {}

    def forget(self, partition: int) -> None:
        """Forget a deleted partition."""
        self._former.pop(partition, None)

    def note(
        self, partition: int, before: PartitionState, after: PartitionState, cause: Cause, *, is_unclean: bool
    ) -> Iterator[tuple[str, str]]:
        """Yield the violations of a partition's next state; `is_unclean` says that it elects an outsider."""
        is_cancelled = cause.cancelled == partition and before.is_reassigning
        if after.is_reassigning:
            if is_cancelled:
                yield "I32", f"a cancelled move goes on, adding {after.adding}, removing {after.removing}"
            if not before.is_reassigning or set(after.replicas).difference(before.replicas):
                self._former[partition] = frozenset(before.replicas)
        elif before.is_reassigning:
            former = self._former.pop(partition)
            # In ZooKeeper mode a cancellation is written later than it is ordered.
            if is_cancelled or (cause.by_zookeeper and former == set(after.replicas)):
                yield from self._cancelled(former, before, after, is_unclean=is_unclean)
            else:
                yield from self._completed(before, after, cause.moves_to)

    def _cancelled(
        self, former: frozenset[BrokerId], before: PartitionState, after: PartitionState, *, is_unclean: bool
    ) -> Iterator[tuple[str, str]]:
        if set(after.replicas) != former:
            yield "I32", f"a cancelled move left replicas {after.replicas}, before it there were {sorted(former)}"
        in_sync = former.intersection(before.isr)
        # PartitionReassignmentRevert puts the first replica in the ISR if nobody else is left.
        wanted = in_sync or (former.intersection(after.replicas[:1]) if self._settings.unclean_election else in_sync)
        if set(after.isr) != wanted and not (is_unclean and former.issuperset(after.isr)):
            yield "I32", f"a cancelled move left ISR {after.isr}, of the former replicas {sorted(in_sync)} are in sync"

    def _completed(
        self, before: PartitionState, after: PartitionState, ordered: tuple[BrokerId, ...]
    ) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with a completed move; `ordered` are the replicas of an order that has just come."""
        current, rules = set(before.replicas), self._settings.rules
        target = set(ordered or before.replicas)
        # Where an order adds or removes nobody, Kafka keeps those of the former one.
        adding = target - current or set(before.adding)
        removing = current - target or set(before.removing)
        kept = target - removing
        shrinks = len(adding) < len(removing)
        waits_for_kept = rules.reassignment_needs_all_targets and (shrinks or not rules.reassignment_ignores_kept)
        if set(after.replicas) != kept:
            yield "I26", f"a reassignment ended with replicas {after.replicas}, ordered were {sorted(kept)}"
        if not set(after.isr).issuperset(kept | adding if waits_for_kept else adding):
            yield "I26", f"a reassignment ended with ISR {after.isr} of {after.replicas}"
