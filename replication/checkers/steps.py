"""The invariants that are looked at after every event.
 It decides when which check runs: after an event only what the event can have touched is looked at, so that
checking costs about as much as the event itself.

Goals, most important first
1. A break is found at the event that made it.
2. Nothing is taken from the rules: what is committed, complete or allowed is worked out here from logs and records.

How: new records of the metadata log are looked at one by one (`records`). The logs of the node that handled the
event are read on (`shadow`), and its claims as a leader compared with the truth (`ghost`). If anything changed in a
partition, the checks over all its replicas run (`replicas`). What the node sends is compared with the truth too.

Left out: invariants of the end of a run (`clients`, `durability`).
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from log.batches import batches_in
from replication.checkers import records, replicas
from replication.checkers.finding import Finding
from replication.checkers.ghost import Ghost
from replication.checkers.shadow import Shadow
from replication.checkers.view import NodeView, World
from replication.produce import ACKS_ALL
from replication.roles.messages import (
    CONTROLLER,
    AskIsr,
    Beat,
    Consumed,
    Message,
    MetadataTold,
    NodeId,
    Produced,
    Register,
)
from replication.terms import Terms

FINDING_COUNT_MAX = 100
"""A broken run breaks again and again: the first findings tell."""


class StepChecker:
    """Keeps the truth of every partition, and the findings. `permits_loss` takes clean losses for allowed ones."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.findings: list[Finding] = []
        self.ghosts: dict[int, Ghost] = {}
        self._reader = records.RecordReader(terms)

    def after(self, world: World, node: NodeId, message: Message, sent: Iterable[Message]) -> None:
        """Look at everything that the handling of `message` by `node` can have changed."""
        if node == CONTROLLER:
            self._after_controller(world, message)
        elif node < CONTROLLER:
            self._after_broker(world, world.nodes[BrokerId(node)], message, sent)

    def _after_controller(self, world: World, message: Message) -> None:
        reader = self._reader
        if len(world.controller.log) == reader.offset:
            return
        if isinstance(message, AskIsr | Beat) and (what := reader.stale_sender(message)):
            self._find(world, "I24", -1, f"{what} changed the metadata")
        before = reader.offset
        for code, partition, what in reader.read_on(world.controller.log, grows=isinstance(message, AskIsr)):
            self._find(world, code, partition, what)
        if isinstance(message, Register):
            for partition, what in reader.unclean_members(message, before):
                self._find(world, "I25", partition, what)
        for partition, state in world.controller.image.partitions.items():
            ghost = self._ghost(partition)
            if ghost.state is not state:
                self._note_unclean(world, ghost, reader)
                ghost.state = state
                self._check_replicas(world, ghost)

    def _note_unclean(self, world: World, ghost: Ghost, reader: records.RecordReader) -> None:
        for election in reader.take_unclean(ghost.partition):
            shadow = ghost.shadows.get(election.leader)
            node = world.nodes[election.leader]
            if shadow is not None and shadow.life == node.life:
                keep = shadow.agree(ghost.committed)
                cause = f"unclean election of broker {election.leader}"
                ghost.give_up(keep, world.now_ms, election.leader_epoch, cause)

    def _after_broker(self, world: World, node: NodeView, message: Message, sent: Iterable[Message]) -> None:
        if isinstance(message, MetadataTold) and node.role is not None:
            log, told = world.controller.log, message
            if tuple(log[told.offset : told.offset + len(told.records)]) != told.records:
                self._find(world, "I23", -1, f"broker {node.broker} read records that the controller did not write")
            if node.role.image.offset > len(log):
                self._find(world, "I23", -1, f"broker {node.broker} has read {node.role.image.offset} of {len(log)}")
        by_news = isinstance(message, MetadataTold)
        for partition, log_of in node.logs.items():
            ghost = self._ghost(partition)
            shadow = ghost.shadows.get(node.broker)
            if shadow is None or shadow.log is not log_of:
                shadow = ghost.shadows[node.broker] = Shadow(log_of, node.life)
            is_changed = shadow.version != log_of.version
            if is_changed:
                self._read_log(world, ghost, node, shadow)
            for code, what in replicas.check_claims(ghost, node, shadow, self.terms, by_news=by_news):
                self._find(world, code, partition, what)
            if is_changed:
                self._check_replicas(world, ghost)
        for each in sent:
            self._check_answer(world, node, each)

    def _read_log(self, world: World, ghost: Ghost, node: NodeView, shadow: Shadow) -> None:
        agreed_before = shadow.agreed
        for offset, entry in shadow.read_on():
            previous = shadow.entries[offset - 1].epoch if offset else -1
            known = ghost.matching.setdefault((offset, entry.epoch), (entry, previous))
            if known != (entry, previous):
                what = f"offset {offset} of epoch {entry.epoch} differs on broker {node.broker}"
                self._find(world, "I11", ghost.partition, what)
            shadow.entries[offset] = known[0]
            ghost.appended.add(entry.value)
        for code, what in replicas.check_log(ghost, node, shadow, agreed_before):
            self._find(world, code, ghost.partition, what)

    def _check_replicas(self, world: World, ghost: Ghost) -> None:
        for code, what in replicas.check_members(world, ghost, self.terms):
            self._find(world, code, ghost.partition, what)

    def _check_answer(self, world: World, node: NodeView, message: Message) -> None:
        if isinstance(message, Produced):
            if message.error is not ErrorCode.NONE or message.acks != ACKS_ALL:
                return
            ghost = self._ghost(message.partition)
            if message.offset >= len(ghost.committed) and not ghost.is_tainted:
                what = f"broker {node.broker} acknowledged offset {message.offset} of {len(ghost.committed)} committed"
                self._find(world, "I19", message.partition, what)
        elif isinstance(message, Consumed) and message.records:
            ghost = self._ghost(message.partition)
            if ghost.is_tainted:
                return
            for batch in batches_in(message.records):
                for record in batch.records():
                    self._check_shown(world, ghost, record.offset, int.from_bytes(record.value or b"", "big"))

    def _check_shown(self, world: World, ghost: Ghost, offset: int, value: int) -> None:
        if offset >= len(ghost.committed):
            self._find(
                world, "I18", ghost.partition, f"offset {offset} was shown, {len(ghost.committed)} are committed"
            )
        elif ghost.committed[offset].value != value:
            committed = ghost.committed[offset].value
            self._find(world, "I17", ghost.partition, f"offset {offset} shows {value}, committed is {committed}")

    def _ghost(self, partition: int) -> Ghost:
        ghost = self.ghosts.get(partition)
        if ghost is None:
            ghost = self.ghosts[partition] = Ghost(partition)
        return ghost

    def _find(self, world: World, code: str, partition: int, what: str) -> None:
        if len(self.findings) < FINDING_COUNT_MAX:
            self.findings.append(Finding(code, world.now_ms, partition, what))
