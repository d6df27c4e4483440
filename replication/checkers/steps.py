"""The invariants that are looked at after every event.

It decides when which check runs: after an event only what the event can have touched is looked at, so that
checking costs less than the event itself.

Goals, most important first
1. A break is found at the event that made it.
2. Nothing is taken from the rules: what is committed, complete or allowed is worked out here from logs and records.

Constraints: a message of one partition touches that partition on one node; any other message may touch all of the
node's. `check_all`, at the end, asks whether that was so.

How: new records of the metadata log are looked at one by one (`records`). The log that an event touched is read on
(`shadow`), and its broker's claims as a leader compared with the truth (`ghost`). The checks over all replicas of a
partition (`replicas`) run when they can say something new: when the controller changed it, when more is committed, when
a log was cut or opened, when a leader counts others in than before. What the node sends is compared with the truth too.

Left out: invariants of the end of a run (`clients`, `durability`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from broker.units import TimeMs
from log.batches.in_buffer import OFFSET_AND_SIZE
from replication.checkers import records, replicas
from replication.checkers.committed_model import Ghost
from replication.checkers.finding import Finding
from replication.checkers.rare import Rare, RareStates
from replication.checkers.replica_model import Decoder, News, Shadow
from replication.checkers.view import NodeView, World
from replication.roles.follower import FollowerRole
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    CONTROLLER,
    PARTITION_MESSAGES,
    AskIsr,
    Beat,
    Consumed,
    Fetched,
    IsrTold,
    Message,
    MetadataTold,
    NodeId,
    Produced,
    Register,
    Registered,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.partition import LeaderState
from replication.rules.produce import ACKS_ALL
from replication.rules.settings import Terms

_NONE: Final = ErrorCode.NONE
_CHECKED_ANSWERS: Final = frozenset({Produced, Consumed})
NoteHigh = Callable[[TimeMs, int, BrokerId, int], None]
FINDING_COUNT_MAX = 100
"""A broken run breaks again and again: the first findings tell."""


class StepChecker:
    """Keeps the truth of every partition, and the findings.

    `note_high` is told (time, partition, broker, high watermark) whenever a leader shows another one.
    """

    def __init__(self, terms: Terms, note_high: NoteHigh | None = None) -> None:
        self.terms = terms
        self._note_high = note_high
        self.findings: list[Finding] = []
        self.ghosts: dict[int, Ghost] = {}
        self._watched: dict[ReplicaLog, tuple[Ghost, Shadow]] = {}
        """What is known of each log that is open, and of its partition."""
        self.rare = RareStates()
        self._reader = records.RecordReader(terms, self.rare)
        self._decoder = Decoder()

    def after(self, world: World, node: NodeId, message: Message, out: Outbox) -> None:
        """Look at everything that the handling of `message` by `node` can have changed; `out` is what it sent."""
        if node < CONTROLLER:
            machine = world.nodes[BrokerId(node)]
            if type(message) in PARTITION_MESSAGES:
                partition: int = message.partition  # type: ignore[union-attr] # That is what the set says.
                if partition in machine.logs:
                    self._look(world, machine, partition)
            else:
                self._after_own_message(world, machine, message)
            for _, each in out.sent:
                if type(each) is Fetched:
                    if each.answer.error is not _NONE or each.answer.diverging is not None:
                        self.rare.note_fetched(each)
                elif type(each) in _CHECKED_ANSWERS:
                    self._check_answer(world, node, each)
        elif node == CONTROLLER:
            for _, each in out.sent:
                if isinstance(each, IsrTold | Registered):
                    self.rare.note_sent(each)
            self._after_controller(world, message)

    def check_all(self, world: World) -> None:
        """Look at everything, whatever the events can have touched, and forget logs that were removed."""
        for ghost in self.ghosts.values():
            replicas_now = () if ghost.state is None else ghost.state.replicas
            ghost.shadows = {broker: shadow for broker, shadow in ghost.shadows.items() if broker in replicas_now}
        self._watched.clear()
        for _, node in sorted(world.nodes.items()):
            for partition in sorted(node.logs):
                self._look(world, node, partition)
        for _, ghost in sorted(self.ghosts.items()):
            self._check_replicas(world, ghost)

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
                ghost.learn(state)
                self._check_replicas(world, ghost)

    def _note_unclean(self, world: World, ghost: Ghost, reader: records.RecordReader) -> None:
        for election in reader.take_unclean(ghost.partition):
            shadow = ghost.shadows.get(election.leader)
            node = world.nodes[election.leader]
            if shadow is not None and shadow.life == node.life:
                keep = shadow.agree(ghost.committed)
                cause = f"unclean election of broker {election.leader}"
                ghost.give_up(keep, world.now_ms, election.leader_epoch, cause)

    def _after_own_message(self, world: World, node: NodeView, message: Message) -> None:
        """Look at all partitions of a broker."""
        by_news = isinstance(message, MetadataTold)
        if isinstance(message, MetadataTold) and node.role is not None:
            known, told = world.controller.log, message
            if tuple(known[told.offset : told.offset + len(told.records)]) != told.records:
                self._find(world, "I23", -1, f"broker {node.broker} read records that the controller did not write")
            if node.role.image.offset > len(known):
                self._find(world, "I23", -1, f"broker {node.broker} has read {node.role.image.offset} of {len(known)}")
        for partition in node.logs:
            self._look(world, node, partition, by_news=by_news)

    def _look(self, world: World, node: NodeView, partition: int, *, by_news: bool = False) -> None:
        """Look at one partition on one broker."""
        log, role = node.logs[partition], node.role
        watched = self._watched.get(log)
        ghost, shadow = self._watch(node, partition) if watched is None else watched
        part = None if role is None else role.roles.get(partition)
        is_changed = shadow.version != log.version
        if not isinstance(part, LeaderRole):
            if is_changed and self._read_log(world, ghost, node, shadow):
                self._check_replicas(world, ghost)
            return
        leader, claim = part.state, shadow.claim
        shadow.claim = leader
        if is_changed or (leader is not claim and (claim is None or not _claims_the_same(leader, claim))):
            is_cut = is_changed and self._read_log(world, ghost, node, shadow)
            counts_others = claim is None or leader.isr is not claim.isr
            self._look_at_leader(world, ghost, shadow, by_news=by_news, looks_at_all=is_cut or counts_others)

    def _watch(self, node: NodeView, partition: int) -> tuple[Ghost, Shadow]:
        """Begin to watch a log in the place of the one that its broker had open before, if it is another one."""
        ghost, log = self._ghost(partition), node.logs[partition]
        shadow = ghost.shadows.get(node.broker)
        if shadow is None or shadow.log is not log:
            if shadow is not None:
                self._watched.pop(shadow.log, None)
            shadow = ghost.shadows[node.broker] = self._new_shadow(ghost, node, log, shadow)
        self._watched[log] = ghost, shadow
        return ghost, shadow

    def _look_at_leader(self, world: World, ghost: Ghost, shadow: Shadow, *, by_news: bool, looks_at_all: bool) -> None:
        """Look at what a leader claims, and at all replicas if that says something new."""
        leader, partition = shadow.claim, ghost.partition
        assert leader is not None
        committed, shown = len(ghost.committed), (shadow.shown_epoch, shadow.shown)
        if by_news:
            self._note_overtaken(ghost, leader)
        for code, what in replicas.check_claims(ghost, leader, shadow, self.terms, by_news=by_news):
            self._find(world, code, partition, what)
        if shown != (shadow.shown_epoch, shadow.shown) and self._note_high is not None:
            self._note_high(world.now_ms, partition, shadow.broker, shadow.shown)
        if looks_at_all or committed != len(ghost.committed):
            self._check_replicas(world, ghost)
        elif ghost.state is not None and leader.leader_epoch == ghost.state.leader_epoch:
            for code, what in replicas.check_quorum(ghost, leader, self.terms):
                self._find(world, code, partition, what)

    def _note_overtaken(self, ghost: Ghost, leader: LeaderState) -> None:
        asked = ghost.asked.get(leader.broker)
        if asked is not None and asked is not leader.pending:
            is_made = set(asked.members) == set(leader.isr)
            self.rare.seen[Rare.CHANGE_KNOWN_BY_NEWS if is_made else Rare.CHANGE_OVERTAKEN] += 1

    def _read_log(self, world: World, ghost: Ghost, node: NodeView, shadow: Shadow) -> bool:
        """Read a log on, and return whether it was cut or just opened."""
        agreed_before, high_before = shadow.agreed, shadow.high_watermark
        news = shadow.read_on(self._decoder)
        entries = shadow.entries
        if news.taken:
            self._note_gone(world, ghost, node, news)
            if not news.is_first and news.first_offset < high_before:
                self.rare.seen[Rare.CUT_BELOW_HIGH_WATERMARK] += 1
        for offset in range(news.first_offset, len(entries)):
            entry = entries[offset]
            previous = entries[offset - 1].epoch if offset else -1
            known = ghost.matching.setdefault((offset, entry.epoch), (entry, previous))
            if known[0] is not entry or known[1] != previous:
                if known != (entry, previous):
                    what = f"offset {offset} of epoch {entry.epoch} differs on broker {node.broker}"
                    self._find(world, "I11", ghost.partition, what)
                entries[offset] = known[0]
            ghost.appended.add(entry.value)
        for code, what in self._check_log(ghost, node, shadow, news, agreed_before):
            self._find(world, code, ghost.partition, what)
        return news.is_cut

    def _note_gone(self, world: World, ghost: Ghost, node: NodeView, news: News) -> None:
        """Note what took records from a broker, which perhaps had the last copy."""
        how = f"cut its log to {news.first_offset}"
        role = None if node.role is None else node.role.roles.get(ghost.partition)
        if news.is_first:
            how = f"came back with a log that ends at {len(ghost.shadows[node.broker].entries)}"
        elif isinstance(role, FollowerRole):
            how += f" to follow broker {role.state.leader} in epoch {role.state.leader_epoch}"
        event = f"broker {node.broker}, the last to have it, {how} at {world.now_ms} ms"
        ghost.gone.update((entry.value, event) for entry in news.taken)

    def _check_replicas(self, world: World, ghost: Ghost) -> None:
        for code, what in replicas.check_members(world, ghost, self.terms):
            self._find(world, code, ghost.partition, what)

    def _check_answer(self, world: World, node: NodeId, message: Message) -> None:
        self.rare.note_sent(message)
        if isinstance(message, Produced):
            if message.error is not _NONE or message.acks != ACKS_ALL:
                return
            ghost = self._ghost(message.partition)
            if message.offset >= len(ghost.committed) and not ghost.is_tainted:
                what = f"broker {node} acknowledged offset {message.offset} of {len(ghost.committed)} committed"
                self._find(world, "I19", message.partition, what)
        elif isinstance(message, Consumed) and message.records:
            ghost = self._ghost(message.partition)
            if ghost.is_tainted:
                return
            for offset, shown in self._shown_in(message.records):
                self._check_shown(world, ghost, offset, shown)

    # What another kind of log needs otherwise; see `kept_steps`.

    def _new_shadow(self, ghost: Ghost, node: NodeView, log: ReplicaLog, former: Shadow | None) -> Shadow:
        return Shadow(log, node.life, node.broker, former=former)

    def _check_log(
        self, ghost: Ghost, node: NodeView, shadow: Shadow, news: News, agreed_before: int
    ) -> Iterator[replicas.Broken]:
        return replicas.check_log(ghost, node, shadow, news, agreed_before)

    def _shown_in(self, records: bytes) -> Iterator[tuple[int, int]]:
        """Yield offset and value of what a consumer is shown."""
        base_offset, _ = OFFSET_AND_SIZE.unpack_from(records)
        for place, entry in enumerate(self._decoder.entries(records, base_offset)):
            yield base_offset + place, entry.value

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


def _claims_the_same(now: LeaderState, before: LeaderState) -> bool:
    """Whether a leader's state differs at most in what it knows of its followers, as after most fetches."""
    return (
        now.isr is before.isr
        and now.pending is before.pending
        and now.partition_epoch == before.partition_epoch
        and now.leader_epoch == before.leader_epoch
    )
