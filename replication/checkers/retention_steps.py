"""The invariants that are looked at after every event where logs are cut at their start and compacted.

It decides when the checks of `kept_logs` run, and holds what is said against what is there: a follower's start against
its leader's (K3), the answer to an order to delete against the logs (K4), tombstones against time (K7).

Constraints: as in `steps`, of which this is a kind. A follower counts as having taken an answer when it asks on.

Left out: what consumers have seen, which is looked at when the run is over (`kept_report`).

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.checkers import replicas
from replication.checkers.committed_model import Ghost
from replication.checkers.replica_model import News, Shadow
from replication.checkers.retention_logs import check_kept_log, early_tombstones
from replication.checkers.retention_model import BatchReader, KeptGhost, KeptShadow
from replication.checkers.steps import NoteHigh, StepChecker
from replication.checkers.view import NodeView, World, leader_role
from replication.retention.messages import DeleteRecords, RecordsDeleted
from replication.retention.policy import Upkeep
from replication.roles.messages import CONTROLLER, Fetch, Fetched, Message, NodeId
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.deletion import UP_TO_HIGH_WATERMARK
from replication.rules.settings import Terms


class KeptStepChecker(StepChecker):
    """A step checker for logs that are kept as `upkeep` says; `wall_clock_ms` is what clocks show at the start."""

    def __init__(self, terms: Terms, upkeep: Upkeep, wall_clock_ms: int, note_high: NoteHigh | None = None) -> None:
        super().__init__(terms, note_high)
        self._upkeep = upkeep
        self._wall_clock_ms = wall_clock_ms
        self._batches = BatchReader()
        self._has_jumped = False

    def after(self, world: World, node: NodeId, message: Message, out: Outbox) -> None:
        """Look at everything that the handling of `message` by `node` can have changed; `out` is what it sent."""
        if node < CONTROLLER:
            machine = world.nodes[BrokerId(node)]
            if type(message) is DeleteRecords:
                self._note_order(world, machine, message)
            elif type(message) is Fetched:
                self._check_start(world, machine, message, out)
            for _, each in out.sent:
                if type(each) is Fetched and each.answer.error is ErrorCode.NONE:
                    self._kept(each.partition).note_start(each.answer.start_offset)
                elif type(each) is RecordsDeleted:
                    self._check_deleted(world, machine, each)
        super().after(world, node, message, out)

    def _kept(self, partition: int) -> KeptGhost:
        ghost = self._ghost(partition)
        assert isinstance(ghost, KeptGhost)
        return ghost

    def _ghost(self, partition: int) -> Ghost:
        ghost = self.ghosts.get(partition)
        if ghost is None:
            ghost = self.ghosts[partition] = KeptGhost(partition)
        return ghost

    def _new_shadow(self, ghost: Ghost, node: NodeView, log: ReplicaLog, former: Shadow | None) -> Shadow:
        assert isinstance(ghost, KeptGhost)
        return KeptShadow(ghost, self._batches, log, (node.broker, node.life), former)

    def _check_log(
        self, ghost: Ghost, node: NodeView, shadow: Shadow, news: News, agreed_before: int
    ) -> Iterator[replicas.Broken]:
        assert isinstance(ghost, KeptGhost)
        assert isinstance(shadow, KeptShadow)
        yield from check_kept_log(ghost, node, shadow, news, agreed_before)

    def _look(self, world: World, node: NodeView, partition: int, *, by_news: bool = False) -> None:
        super()._look(world, node, partition, by_news=by_news)
        self._has_jumped = self._has_jumped or node.clock_ahead_ms != 0
        ghost = self._kept(partition)
        shadow = ghost.shadows[node.broker]
        assert isinstance(shadow, KeptShadow)
        if shadow.new_gaps and not self._has_jumped:
            now = (self._wall_clock_ms + world.now_ms, self._upkeep.delete_retention_ms)
            for code, what in early_tombstones(ghost, shadow, now):
                self._find(world, code, partition, what)
        shadow.new_gaps = []

    def _shown_in(self, records: bytes) -> Iterator[tuple[int, int]]:
        for batch in self._batches.batches(records):
            for held in batch.records:
                yield held.offset, held.entry.value

    def _note_order(self, world: World, node: NodeView, order: DeleteRecords) -> None:
        role = leader_role(node, order.partition)
        if role is None:
            return
        high = role.log.log.high_watermark
        offset = high if order.offset == UP_TO_HIGH_WATERMARK else order.offset
        ghost = self._kept(order.partition)
        ghost.note_start(min(offset, high))
        ghost.ordered[order.number] = offset, {broker: each.life for broker, each in world.nodes.items()}

    def _check_start(self, world: World, node: NodeView, told: Fetched, out: Outbox) -> None:
        """Check that a follower that has used an answer begins where its leader does, or later."""
        answer, log = told.answer, node.logs.get(told.partition)
        if log is None or answer.error is not ErrorCode.NONE or answer.diverging is not None:
            return
        asks_on = any(type(each) is Fetch and each.partition == told.partition for _, each in out.sent)
        start, high = log.log.log_start_offset, log.log.high_watermark
        if asks_on and start < min(answer.start_offset, high):
            what = f"broker {node.broker} has a log from {start} on, its leader's begins at {answer.start_offset}"
            self._find(world, "K3", told.partition, what)

    def _check_deleted(self, world: World, node: NodeView, told: RecordsDeleted) -> None:
        """Check that an order that is answered holds on every member of the ISR that has lived through it."""
        ghost = self._kept(told.partition)
        if told.error is not ErrorCode.NONE or ghost.state is None:
            return
        offset, lives = ghost.ordered[told.number]
        for broker in sorted({node.broker, *ghost.state.isr}):
            machine = world.nodes[broker]
            log = machine.logs.get(told.partition)
            if log is None or machine.role is None or machine.life != lives[broker]:
                continue
            if log.log.log_start_offset < offset or told.low_watermark < offset:
                what = f"deletion up to {offset} is answered, broker {broker} has a log from {log.log.log_start_offset}"
                self._find(world, "K4", told.partition, what)
