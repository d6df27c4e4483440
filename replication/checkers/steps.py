"""Check the invariants after every event.

A message about one partition changes that partition on one node only; any other message may change all partitions of
the node. `check_all` verifies this at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from log.batches.in_buffer import OFFSET_AND_SIZE
from replication.checkers import records, replicas
from replication.checkers.answers import ASKED, unfounded
from replication.checkers.catalogue import Finding
from replication.checkers.elections import Cause
from replication.checkers.followers import wrong_log
from replication.checkers.incarnations import WATCHED, IncarnationChecker
from replication.checkers.leaders import wrong_change
from replication.checkers.observed_log import Decoder, LogChange, ObservedLog
from replication.checkers.orders import ORDERS, OrderChecker
from replication.checkers.producers import check_producers, must_accept
from replication.checkers.rare import Rare, RareStates
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.restarts import RestartChecker
from replication.checkers.view import CheckedCluster, NodeView, leader_role
from replication.roles.follower import FollowerRole
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    CONTROLLER,
    AlterPartition,
    AlterPartitionReassignments,
    AlterPartitionResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CheckpointDue,
    ConsumerFetchResponse,
    ElectLeaders,
    Fetch,
    FetchResponse,
    ListOffsetsResponse,
    Message,
    MetadataFetchResponse,
    NodeId,
    Produce,
    ProduceResponse,
    ReplicaMessage,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.election import Election
from replication.rules.partition import LeaderState
from replication.rules.produce import ACKS_ALL
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Truncation
from replication.zookeeper.messages import UpdatePartitionState

_NONE: Final = ErrorCode.NONE
_NO_MESSAGE: Final = Message()
_CHECKED_ANSWERS: Final = frozenset({ProduceResponse, ConsumerFetchResponse})
FINDING_COUNT_MAX = 100
"""The number of findings that are kept; the first findings of a run are enough."""


class StepChecker:
    """Keep the reference log of every partition, and the findings."""

    def __init__(self, settings: PartitionSettings) -> None:
        self.settings = settings
        self.note_refusal: Callable[[NodeId, ProduceResponse], None] = _forget
        """Called with each answer to a write that is an error, and the broker that gave it."""
        self.findings: list[Finding] = []
        self.references: dict[int, ReferenceLog] = {}
        self._watched: dict[ReplicaLog, tuple[ReferenceLog, ObservedLog]] = {}
        """The observed log of each open log, and the reference log of its partition."""
        self.rare = RareStates()
        self.orders = OrderChecker()
        self._reader = records.RecordReader(settings, self.rare)
        self._incarnations = IncarnationChecker()
        self._restarts = RestartChecker()
        self._handled: tuple[Message, Outbox] = (_NO_MESSAGE, Outbox())
        """The message that is being checked, and what its receiver sends."""
        self._may_cut = False
        """Whether it is an answer to a follower that may ask for another end of its log."""
        self.decoder = Decoder()
        """Reads the records of logs and requests."""

    def after(self, cluster: CheckedCluster, node: NodeId, message: Message, out: Outbox) -> None:
        """Check the possible effects of `message` on `node`; `out` holds the node's sent messages."""
        if node < CONTROLLER:
            machine = cluster.nodes[BrokerId(node)]
            self._handled = message, out
            if type(message) is FetchResponse:
                self._may_cut = message.answer.diverging is not None
            else:
                self._may_cut = type(message) is ListOffsetsResponse
            if isinstance(message, ReplicaMessage):
                partition = message.partition
                if partition in machine.logs:
                    self._look(cluster, machine, partition)
            else:
                self._after_own_message(cluster, machine, message)
            if type(message) is ElectLeaders and message.election is Election.UNCLEAN:
                for _, each in out.sent:
                    if type(each) is UpdatePartitionState:
                        self._reader.note_order(each.partition, each.state)
            if type(message) is Produce:
                self._check_sequence(cluster, machine, message, out)
            if type(message) in ASKED and not self._repeats(machine, message, out):
                partition = getattr(message, "partition", -1)
                for what in unfounded(machine, message, out, self._reader.settings_of(partition)):
                    self._find(cluster, "I30", partition, what)
            for _, each in out.sent:
                if type(each) is FetchResponse:
                    if each.answer.error is not _NONE or each.answer.diverging is not None:
                        self.rare.note_sent(each)
                elif type(each) in _CHECKED_ANSWERS:
                    self._check_answer(cluster, node, each)
        elif node == CONTROLLER:
            for _, each in out.sent:
                if isinstance(each, AlterPartitionResponse | BrokerRegistrationResponse):
                    self.rare.note_sent(each)
            if type(message) in ORDERS:
                self._check_order(cluster, message)
            self._after_controller(cluster, message, out)

    def check_all(self, cluster: CheckedCluster) -> None:
        """Check all partitions, including those unaffected by events, and forget removed logs."""
        for reference in self.references.values():
            replicas_now = () if reference.state is None else reference.state.replicas
            reference.observed_logs = {
                broker: observed for broker, observed in reference.observed_logs.items() if broker in replicas_now
            }
        self._watched.clear()
        for _, node in sorted(cluster.nodes.items()):
            for partition in sorted(node.logs):
                self._look(cluster, node, partition)
        for _, reference in sorted(self.references.items()):
            self._check_replicas(cluster, reference)

    def _check_order(self, cluster: CheckedCluster, message: Message) -> None:
        """Check an operator's order before the partition's new state is taken over."""
        reference = self.references.get(getattr(message, "partition", -1))
        before = None if reference is None else reference.state
        for partition, what in self.orders.after(cluster, message, before):
            self._find(cluster, "L14", partition, what)

    def _after_controller(self, cluster: CheckedCluster, message: Message, out: Outbox) -> None:
        reader = self._reader
        if type(message) in WATCHED and not cluster.controller.role_settings.has_zookeeper:
            for code, what in self._incarnations.after(cluster, reader.brokers, message, out):
                self._find(cluster, code, -1, what)
        if len(cluster.controller.log) == reader.offset:
            return
        if isinstance(message, AlterPartition) and (what := reader.deposed_sender(message)):
            self._find(cluster, "I24", -1, f"{what} changed the metadata")
        before, cause = reader.offset, _cause(cluster, reader, message)
        for code, partition, what in reader.read_on(cluster.controller.log, cause):
            self._find(cluster, code, partition, what)
        if cause.is_unclean:
            for partition, what in reader.unclean_members(cause.registers, before):
                self._find(cluster, "I25", partition, what)
        while reader.removed:
            self._reference(reader.removed.pop()).is_deleted = True
        for partition, state in cluster.controller.image.partitions.items():
            reference = self._reference(partition)
            if reference.state is not state:
                self._note_unclean(cluster, reference, reader)
                reference.learn(state)
                self._check_replicas(cluster, reference)

    def _note_unclean(self, cluster: CheckedCluster, reference: ReferenceLog, reader: records.RecordReader) -> None:
        for election in reader.take_unclean(reference.partition):
            observed = reference.observed_logs.get(election.leader)
            node = cluster.nodes[election.leader]
            is_open = observed is not None and node.logs.get(reference.partition) is observed.log
            # A log that is not open is as it was last seen, unless its end is lost: its first look as leader shows it.
            keep = 0 if observed is None else observed.agree(reference.committed)
            reference.give_up(keep, cluster.now_ms, election)
            reference.unsettled = None if is_open else election

    def _settle(self, cluster: CheckedCluster, reference: ReferenceLog, observed: ObservedLog) -> None:
        """Give up what an unclean leader lacks whose log was not open as it was elected, as it first leads."""
        election = reference.unsettled
        if election is None or election.leader != observed.broker:
            return
        reference.unsettled = None
        keep = observed.agree(reference.committed)
        if keep < len(reference.committed):
            reference.give_up(keep, cluster.now_ms, election)

    def _after_own_message(self, cluster: CheckedCluster, node: NodeView, message: Message) -> None:
        """Check all partitions of a broker."""
        by_metadata = isinstance(message, MetadataFetchResponse)
        if isinstance(message, CheckpointDue):
            self._restarts.note_checkpoint(node)
        if isinstance(message, MetadataFetchResponse) and node.role is not None:
            known = cluster.controller.log
            if tuple(known[message.offset : message.offset + len(message.records)]) != message.records:
                self._find(cluster, "I23", -1, f"broker {node.broker} read records that the controller did not write")
            if node.role.image.offset > len(known):
                self._find(
                    cluster, "I23", -1, f"broker {node.broker} has read {node.role.image.offset} of {len(known)}"
                )
        for partition in node.logs:
            self._look(cluster, node, partition, by_metadata=by_metadata)

    def _look(self, cluster: CheckedCluster, node: NodeView, partition: int, *, by_metadata: bool = False) -> None:
        """Check one partition on one broker."""
        log, role = node.logs[partition], node.role
        watched = self._watched.get(log)
        reference, observed = self._watch(node, partition) if watched is None else watched
        part = None if role is None else role.roles.get(partition)
        is_changed = observed.version != log.version
        if part is None and role is not None and partition in role.offline:
            observed.has_failed = True
        if not isinstance(part, LeaderRole):
            if is_changed or self._may_cut:
                for code, what in wrong_log(observed, *self._handled, self.settings):
                    self._find(cluster, code, partition, what)
            if is_changed and self._read_log(cluster, reference, node, observed):
                self._check_replicas(cluster, reference)
            return
        leader, claim = part.state, observed.claim
        observed.claim = leader
        message = self._handled[0]
        if claim is not None and (leader.pending is not claim.pending or type(message) is AlterPartitionResponse):
            for what in wrong_change(claim, leader, message, observed.high_watermark, self.settings.rules):
                self._find(cluster, "I27", partition, what)
        if is_changed or (leader is not claim and (claim is None or not _claims_the_same(leader, claim))):
            is_cut = is_changed and self._read_log(cluster, reference, node, observed)
            counts_others = claim is None or leader.isr is not claim.isr
            self._look_at_leader(
                cluster, reference, observed, by_metadata=by_metadata, looks_at_all=is_cut or counts_others
            )

    def _watch(self, node: NodeView, partition: int) -> tuple[ReferenceLog, ObservedLog]:
        """Observe a newly opened log instead of the log that the broker had open before."""
        reference, log = self._reference(partition), node.logs[partition]
        observed = reference.observed_logs.get(node.broker)
        if observed is None or observed.log is not log:
            if observed is not None:
                self._watched.pop(observed.log, None)
            former = observed
            observed = reference.observed_logs[node.broker] = self._new_observed(reference, node, log, former)
            observed.opened_in = 0 if reference.state is None else reference.state.partition_epoch
        self._watched[log] = reference, observed
        return reference, observed

    def _look_at_leader(
        self,
        cluster: CheckedCluster,
        reference: ReferenceLog,
        observed: ObservedLog,
        *,
        by_metadata: bool,
        looks_at_all: bool,
    ) -> None:
        """Check a leader's state, and all replicas if the state has changed."""
        leader, partition = observed.claim, reference.partition
        settings = self._reader.settings_of(partition)
        assert leader is not None
        committed, shown = len(reference.committed), (observed.shown_epoch, observed.shown)
        if by_metadata:
            self._note_overtaken(reference, leader)
        for code, what in replicas.check_claims(reference, leader, observed, settings):
            self._find(cluster, code, partition, what)
        has_moved = shown != (observed.shown_epoch, observed.shown)
        if has_moved and leader.leader_epoch < reference.clean_from_epoch:
            reference.note_ended(observed, leader.leader_epoch, shown[1] if shown[0] == observed.shown_epoch else 0)
        elif has_moved:
            self._settle(cluster, reference, observed)
            for code, what in replicas.commit(cluster, reference, leader, observed, settings):
                self._find(cluster, code, partition, what)
        if looks_at_all or committed != len(reference.committed):
            self._check_replicas(cluster, reference)
        elif reference.state is not None and leader.leader_epoch == reference.state.leader_epoch:
            for code, what in replicas.check_quorum(reference, leader, settings):
                self._find(cluster, code, partition, what)

    def _note_overtaken(self, reference: ReferenceLog, leader: LeaderState) -> None:
        asked = reference.asked.get(leader.broker)
        if asked is not None and asked is not leader.pending:
            is_made = set(asked.members) == set(leader.isr)
            self.rare.seen[Rare.CHANGE_KNOWN_BY_NEWS if is_made else Rare.CHANGE_OVERTAKEN] += 1

    def _read_log(
        self, cluster: CheckedCluster, reference: ReferenceLog, node: NodeView, observed: ObservedLog
    ) -> bool:
        """Read the new part of a log, and return whether it was truncated or just opened."""
        agreed_before, high_before = observed.agreed, observed.high_watermark
        change = observed.read_on(self.decoder)
        entries = observed.entries
        if change.taken:
            self._note_gone(cluster, reference, node, change)
            if not change.is_first and change.first_offset < high_before:
                self.rare.seen[Rare.CUT_BELOW_HIGH_WATERMARK] += 1
        for offset in range(change.first_offset, len(entries)):
            entry = entries[offset]
            previous = entries[offset - 1].epoch if offset else -1
            known = reference.matching.setdefault((offset, entry.epoch), (entry, previous))
            if known[0] is not entry or known[1] != previous:
                if known[0] == entry and (known[1] == previous or observed.begins_after(offset - 1)):
                    pass
                elif known[0] != entry or not reference.skips_epoch_start(offset, known[1], previous):
                    what = f"offset {offset} of epoch {entry.epoch} differs on broker {node.broker}"
                    self._find(cluster, "I11", reference.partition, what)
                entries[offset] = known[0]
            reference.appended.add(entry.value)
        for code, what in self._check_log(reference, node, observed, change, agreed_before):
            self._find(cluster, code, reference.partition, what)
        for what in check_producers(observed, change):
            self._find(cluster, "I21", reference.partition, what)
        if change.is_first:
            self._check_restart(cluster, reference, node, observed)
        return change.is_cut

    def _check_restart(
        self, cluster: CheckedCluster, reference: ReferenceLog, node: NodeView, observed: ObservedLog
    ) -> None:
        """Check a log that was opened again, unless the replica was deleted meanwhile."""
        former, observed.former = observed.former, None
        if former is None or former.has_failed or self.settings.rules.truncation is not Truncation.ON_FETCH:
            return  # Before KIP-595 a follower may have cut its log as it was opened.
        if reference.moved_away.get(node.broker, -1) >= former.opened_in:
            self._restarts.forget(node.broker, reference.partition)
            return
        for what in self._restarts.check(node, reference.partition, observed, former):
            self._find(cluster, "I34", reference.partition, what)

    def _note_gone(self, cluster: CheckedCluster, reference: ReferenceLog, node: NodeView, change: LogChange) -> None:
        """Note the event that removed records from a broker, which perhaps had the last copy."""
        how = f"cut its log to {change.first_offset}"
        role = None if node.role is None else node.role.roles.get(reference.partition)
        if change.is_first:
            how = f"came back with a log that ends at {len(reference.observed_logs[node.broker].entries)}"
        elif isinstance(role, FollowerRole):
            how += f" to follow broker {role.state.leader} in epoch {role.state.leader_epoch}"
        event = f"broker {node.broker}, the last to have it, {how} at {cluster.now_ms} ms"
        reference.gone.update((entry.value, event) for entry in change.taken)

    def _check_replicas(self, cluster: CheckedCluster, reference: ReferenceLog) -> None:
        for code, what in replicas.check_members(cluster, reference, self._reader.settings_of(reference.partition)):
            self._find(cluster, code, reference.partition, what)

    def _check_answer(self, cluster: CheckedCluster, node: NodeId, message: Message) -> None:
        self.rare.note_sent(message)
        if isinstance(message, ProduceResponse):
            if message.error is not _NONE:
                self.note_refusal(node, message)
                return
            if message.acks != ACKS_ALL:
                return
            reference = self._reference(message.partition)
            if message.offset >= len(reference.committed) and not _is_of_ended_history(cluster, node, reference):
                what = f"broker {node} acknowledged offset {message.offset} of {len(reference.committed)} committed"
                self._find(cluster, "I19", message.partition, what)
                observed = reference.observed_logs[BrokerId(node)]
                if replicas.commit_acknowledged(reference, observed, message.offset + 1):
                    self._check_replicas(cluster, reference)
        elif isinstance(message, ConsumerFetchResponse) and message.records:
            reference = self._reference(message.partition)
            if _is_of_ended_history(cluster, node, reference):
                return
            leads = leader_role(cluster.nodes[BrokerId(node)], message.partition) is not None
            for offset, shown in self._shown_in(message.records):
                # A follower shows what it has up to its own high watermark until its leader tells it to cut.
                if leads or (offset, shown) not in reference.former:
                    self._check_shown(cluster, reference, offset, shown)

    def _repeats(self, node: NodeView, message: Message, out: Outbox) -> bool:
        """Return whether a follower repeats an accepted fetch of an unchanged log.

        An idle follower sends it again and again, the same value.
        """
        if type(message) is not Fetch or node.role is None:
            return False
        role, request, brokers = node.role.roles.get(message.partition), message.request, node.role.image.brokers
        if type(role) is not LeaderRole or (watched := self._watched.get(role.log)) is None:
            return False
        fetches, state = watched[1].fetches, role.log.state
        before = fetches.get(request.replica)
        if before is not None and before[0] is request and before[1] is state and before[2] is brokers:
            return all(type(each) is FetchResponse and each.answer.error is _NONE for _, each in out.sent)
        fetches[request.replica] = request, state, brokers
        return False

    def _check_sequence(self, cluster: CheckedCluster, node: NodeView, write: Produce, out: Outbox) -> None:
        """Check that a write is refused as out of order only if its sequence number does not follow (I21)."""
        for _, answer in out.sent:
            if type(answer) is ProduceResponse and answer.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                observed = self._reference(write.partition).observed_logs[node.broker]
                entry = self.decoder.entries(write.records, 0)[0]
                if must_accept(observed.producers, entry, observed.read_from):
                    what = f"broker {node.broker} refuses sequence {entry.sequence} of producer {entry.producer_id}"
                    self._find(cluster, "I21", write.partition, what)

    # What another kind of log needs otherwise; see `retention_steps`.

    def _new_observed(
        self, reference: ReferenceLog, node: NodeView, log: ReplicaLog, former: ObservedLog | None
    ) -> ObservedLog:
        return ObservedLog(log, node.incarnation, node.broker, former=former)

    def _check_log(
        self, reference: ReferenceLog, node: NodeView, observed: ObservedLog, change: LogChange, agreed_before: int
    ) -> Iterator[replicas.Broken]:
        return replicas.check_log(reference, node, observed, change, agreed_before)

    def _shown_in(self, records: bytes) -> Iterator[tuple[int, int]]:
        """Yield offset and value of each record in a consumer's fetch response."""
        base_offset, _ = OFFSET_AND_SIZE.unpack_from(records)
        for place, entry in enumerate(self.decoder.entries(records, base_offset)):
            yield base_offset + place, entry.value

    def _check_shown(self, cluster: CheckedCluster, reference: ReferenceLog, offset: int, value: int) -> None:
        if offset >= len(reference.committed):
            self._find(
                cluster,
                "I18",
                reference.partition,
                f"offset {offset} was shown, {len(reference.committed)} are committed",
            )
        elif reference.committed[offset].value != value:
            committed = reference.committed[offset].value
            self._find(cluster, "I17", reference.partition, f"offset {offset} shows {value}, committed is {committed}")

    def _reference(self, partition: int) -> ReferenceLog:
        reference = self.references.get(partition)
        if reference is None:
            reference = self.references[partition] = self._new_reference(partition)
        return reference

    def _new_reference(self, partition: int) -> ReferenceLog:
        return ReferenceLog(partition)

    def _find(self, cluster: CheckedCluster, code: str, partition: int, what: str) -> None:
        if len(self.findings) < FINDING_COUNT_MAX:
            self.findings.append(Finding(code, cluster.now_ms, partition, what))


def _forget(_node: NodeId, _answer: ProduceResponse) -> None:
    pass


def _is_of_ended_history(cluster: CheckedCluster, node: NodeId, reference: ReferenceLog) -> bool:
    """Return whether a broker has not heard of the last unclean election yet, and answers as before it."""
    if not reference.clean_from_epoch:
        return False
    role = cluster.nodes[BrokerId(node)].role
    part = None if role is None else role.roles.get(reference.partition)
    return part is None or part.state.leader_epoch < reference.clean_from_epoch


def _cause(cluster: CheckedCluster, reader: records.RecordReader, message: Message) -> Cause:
    """Return what the controller was handling, as far as elections depend on it."""
    if isinstance(message, BrokerRegistration):
        clean_stops = cluster.nodes[message.broker].clean_stops
        return Cause(registers=message.broker, is_unclean=reader.stops_uncleanly(message, clean_stops))
    if isinstance(message, ElectLeaders):
        return Cause(ordered=message.partition if message.election is Election.UNCLEAN else -1)
    if isinstance(message, AlterPartitionReassignments):
        return Cause(cancelled=-1 if message.replicas else message.partition, moves_to=message.replicas)
    if isinstance(message, AlterPartition):
        return Cause(proposed=message.request.members)
    return Cause(by_zookeeper=isinstance(message, UpdatePartitionState))


def _claims_the_same(now: LeaderState, before: LeaderState) -> bool:
    """Whether two states of a leader differ at most in the followers' fetch states, as after most fetches."""
    return (
        now.isr is before.isr
        and now.pending is before.pending
        and now.partition_epoch == before.partition_epoch
        and now.leader_epoch == before.leader_epoch
    )
