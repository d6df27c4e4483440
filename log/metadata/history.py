"""Derive the events of every step of a metadata log's replay (`log.metadata.history`)."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import attrs

from broker.ids import NO_LEADER, BrokerId, Offset, PartitionId
from broker.units import DurationMs, TimeMs
from broker.values import value
from log.metadata.image import (
    CLUSTER_DEFAULT,
    METADATA_VERSION,
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    BrokerDelta,
    BrokerImage,
    ConfigDelta,
    ControllerDelta,
    DirectoryId,
    FeatureDelta,
    OtherDelta,
    PartitionDelta,
    PartitionImage,
    Resource,
    TopicDelta,
)
from log.metadata.replay import Step
from log.metadata.schemas import RecordType


class ClusterEventKind(enum.Enum):
    """List the kinds of events; the value is the text printed for the kind."""

    LEADER_ELECTED = "leader elected"
    """Another broker leads."""
    LEADER_REELECTED = "leader re-elected"
    """The same broker leads in a new epoch."""
    LEADER_LOST = "leader lost"
    """Nobody leads."""
    UNCLEAN_ELECTION = "unclean election"
    """Data may be lost: the controller elected a leader that was neither in sync nor eligible."""
    RECOVERED = "recovered"
    """The leader of an unclean election has recovered."""
    ISR_SHRUNK = "ISR shrunk"
    """Replicas left, none joined."""
    ISR_GROWN = "ISR grown"
    """Replicas joined, none left."""
    ISR_CHANGED = "ISR changed"
    """Both."""
    REASSIGNMENT_BEGUN = "reassignment begun"
    """Replicas are being added or removed from now on."""
    REASSIGNMENT_CHANGED = "reassignment changed"
    """Others are, before it ended."""
    REASSIGNMENT_ENDED = "reassignment ended"
    """None are any more: done, or cancelled."""
    REPLICAS_CHANGED = "replicas changed"
    """Other replicas, without a reassignment."""
    PARTITION_ADDED = "partition added"
    """To a topic that was there before."""
    TOPIC_CREATED = "topic created"
    """With so many partitions."""
    TOPIC_DELETED = "topic deleted"
    """With all its partitions and settings."""
    BROKER_REGISTERED = "broker registered"
    """For the first time, or as a new process."""
    BROKER_UNREGISTERED = "broker unregistered"
    """For good."""
    BROKER_FENCED = "broker fenced"
    """It may not lead or be in sync."""
    BROKER_UNFENCED = "broker unfenced"
    """It may again, after so long."""
    BROKER_STOPPING = "broker stopping"
    """In controlled shutdown: it gives up what it leads."""
    BROKER_DIRECTORIES = "broker directories changed"
    """Other log directories are online."""
    BROKER_CORDONED = "broker directories cordoned"
    """Other log directories get no new replicas (KIP-1066)."""
    SETTING_CHANGED = "setting changed"
    """Of a topic, a broker, or all brokers."""
    FEATURE_CHANGED = "feature changed"
    """Its level for the whole cluster."""
    CONTROLLER_ELECTED = "controller elected"
    """Who leads the quorum."""
    QUOTA_CHANGED = "quota changed"
    """Of a client or a user."""
    ACCESS_CHANGED = "access changed"
    """A rule, a credential or a token."""


@value
class Event:
    """Describe one event: offset, time, kind, subject, and the state before and after as text."""

    offset: Offset
    time_ms: TimeMs
    what: ClusterEventKind
    subject: str
    detail: str = ""
    topic: str | None = None
    partition: PartitionId | None = None
    broker: BrokerId | None = None
    duration_ms: DurationMs | None = None
    """How long what ends here has lasted: a fencing, a time without leader, a reassignment."""
    duration_ms_min: DurationMs | None = None
    """The same, at least, where the log begins with a snapshot in which it lasted already."""


RECOVERY_FEATURE_LEVEL: Final = 4
"""The level of metadata.version from which on the controller marks unclean elections: 3.2-IV0."""


def is_unclean(before: PartitionImage, after: PartitionImage, *, marks_recovery: bool) -> bool:
    """Return whether the change from `before` to `after` elected a leader uncleanly.

    `marks_recovery` is whether the cluster's metadata.version is `RECOVERY_FEATURE_LEVEL` or above.
    """
    if after.leader == NO_LEADER or before.leader_epoch == after.leader_epoch:
        return False
    if after.recovering and not before.recovering:
        return True
    if after.leader in {*before.isr, *before.elr} or after.isr != (after.leader,):
        return False
    if marks_recovery:
        return after.recovering
    return not _was_added(before, after)


def _was_added(before: PartitionImage, after: PartitionImage) -> bool:
    """Return whether a reassignment ended that added the leader; it ends only once all it adds are in sync."""
    leader = after.leader
    return leader in before.adding and leader not in after.adding and leader in after.replicas


_ACCESS: Final = {
    RecordType.ACCESS_CONTROL_ENTRY_RECORD: "rule added",
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD: "rule removed",
    RecordType.USER_SCRAM_CREDENTIAL_RECORD: "credential set",
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD: "credential removed",
    RecordType.DELEGATION_TOKEN_RECORD: "token set",
    RecordType.REMOVE_DELEGATION_TOKEN_RECORD: "token removed",
}


@attrs.define
class StepEvents:
    """Derive events from replay steps; remember when each lasting state began, to report durations."""

    _fenced_since: dict[BrokerId, TimeMs] = attrs.field(factory=dict)
    _leaderless_since: dict[tuple[str, PartitionId], TimeMs] = attrs.field(factory=dict)
    _reassigning_since: dict[tuple[str, PartitionId], TimeMs] = attrs.field(factory=dict)
    _cordoned: dict[BrokerId, tuple[DirectoryId, ...]] = attrs.field(factory=dict)
    _new_topic: tuple[str, TimeMs] | None = None
    _snapshot_ms: TimeMs | None = None
    """The time that the log's snapshot is of: what is so since then was so before, too."""
    _marks_recovery: bool = False
    """Whether the controller marks unclean elections, by the metadata.version so far."""

    def events(self, step: Step) -> Iterator[Event]:
        """Yield the events of a step, in order."""
        for delta in step.deltas:
            found = self._of(delta, step)
            if not step.from_snapshot:
                yield from found
            else:
                for _ in found:  # A state that lasted before the snapshot still needs a beginning.
                    pass
                self._snapshot_ms, self._new_topic = step.time_ms, None

    def _of(self, delta: object, step: Step) -> Iterator[Event]:
        if isinstance(delta, PartitionDelta):
            yield from self._partition(delta, step)
        elif isinstance(delta, BrokerDelta):
            yield from self._broker(delta, step)
        elif isinstance(delta, TopicDelta):
            yield self._topic(delta, step)
        elif isinstance(delta, ConfigDelta):
            yield _setting(delta, step)
        elif isinstance(delta, FeatureDelta):
            if delta.name == METADATA_VERSION:
                self._marks_recovery = delta.after >= RECOVERY_FEATURE_LEVEL
            detail = f"{delta.before} → {delta.after}"
            yield Event(step.offset, step.time_ms, ClusterEventKind.FEATURE_CHANGED, delta.name, detail)
        elif isinstance(delta, ControllerDelta):
            subject = f"controller {delta.leader}"
            yield Event(step.offset, step.time_ms, ClusterEventKind.CONTROLLER_ELECTED, subject, f"epoch {delta.epoch}")
        elif isinstance(delta, OtherDelta):
            what = ClusterEventKind.ACCESS_CHANGED if delta.type in _ACCESS else ClusterEventKind.QUOTA_CHANGED
            yield Event(step.offset, step.time_ms, what, delta.subject, _ACCESS.get(delta.type, ""))

    def _topic(self, delta: TopicDelta, step: Step) -> Event:
        if not delta.deleted:
            self._new_topic = (delta.name, step.time_ms)
            return Event(
                step.offset, step.time_ms, ClusterEventKind.TOPIC_CREATED, delta.name, f"id {delta.id}", delta.name
            )
        detail = f"{delta.partition_count} partition{'' if delta.partition_count == 1 else 's'}"
        return Event(step.offset, step.time_ms, ClusterEventKind.TOPIC_DELETED, delta.name, detail, delta.name)

    def _broker(self, delta: BrokerDelta, step: Step) -> Iterator[Event]:
        before, after = delta.before, delta.after
        broker = after or before
        assert broker is not None

        def event(what: ClusterEventKind, detail: str = "") -> Event:
            return Event(step.offset, step.time_ms, what, f"broker {broker.id}", detail, broker=broker.id)

        if after is None:
            self._fenced_since.pop(broker.id, None)
            self._cordoned.pop(broker.id, None)
            yield event(ClusterEventKind.BROKER_UNREGISTERED)
            return
        if before is None or before.epoch != after.epoch:
            yield event(ClusterEventKind.BROKER_REGISTERED, _registered(after))
        elif before.directories != after.directories:
            yield event(
                ClusterEventKind.BROKER_DIRECTORIES, f"{len(before.directories)} → {len(after.directories)} online"
            )
        if after.cordoned is not None:  # A broker says so some time after it has registered.
            cordoned = self._cordoned.pop(broker.id, ())
            self._cordoned[broker.id] = after.cordoned
            if cordoned != after.cordoned:
                yield event(ClusterEventKind.BROKER_CORDONED, f"{len(cordoned)} → {len(after.cordoned)} cordoned")
        was_fenced = before is not None and before.fenced
        if after.in_controlled_shutdown and not (before is not None and before.in_controlled_shutdown):
            yield event(ClusterEventKind.BROKER_STOPPING)
        if after.fenced and not was_fenced:
            self._fenced_since[broker.id] = step.time_ms
            if before is not None:  # A new broker is fenced until it has caught up.
                yield event(ClusterEventKind.BROKER_FENCED)
        elif was_fenced and not after.fenced:
            yield self._ending(event(ClusterEventKind.BROKER_UNFENCED), self._fenced_since.pop(broker.id, None))

    def _partition(self, delta: PartitionDelta, step: Step) -> Iterator[Event]:
        key, before, after = (delta.topic, delta.partition), delta.before, delta.after
        if after is None:  # It went with its topic, which has an event of its own.
            self._leaderless_since.pop(key, None)
            self._reassigning_since.pop(key, None)
            return
        if after.leader == NO_LEADER and (before is None or before.leader != NO_LEADER):
            self._leaderless_since[key] = step.time_ms
        if _moving(after) and not (before is not None and _moving(before)):
            self._reassigning_since[key] = step.time_ms
        if before is None:
            if self._new_topic != (delta.topic, step.time_ms):
                detail = f"replicas {_listed(after.replicas)}"
                yield _of_partition(delta, step, ClusterEventKind.PARTITION_ADDED, detail)
            return
        yield from self._leader(delta, before, after, step)
        if set(before.isr) != set(after.isr):
            yield _isr(delta, before, after, step)
        yield from self._replicas(delta, before, after, step)

    def _leader(
        self, delta: PartitionDelta, before: PartitionImage, after: PartitionImage, step: Step
    ) -> Iterator[Event]:
        if before.leader_epoch != after.leader_epoch:
            change = f"{_leader_text(before.leader)} → {_leader_text(after.leader)}, epoch {after.leader_epoch}"
            since = None
            if after.leader == NO_LEADER:
                what = ClusterEventKind.LEADER_LOST if before.leader != NO_LEADER else ClusterEventKind.LEADER_REELECTED
            else:
                since = self._leaderless_since.pop((delta.topic, delta.partition), None)
                what = (
                    ClusterEventKind.LEADER_REELECTED
                    if after.leader == before.leader
                    else ClusterEventKind.LEADER_ELECTED
                )
                if is_unclean(before, after, marks_recovery=self._marks_recovery):
                    what = ClusterEventKind.UNCLEAN_ELECTION
                    change += f"; in sync before: {_listed(before.isr)}, eligible: {_listed(before.elr)}"
            yield self._ending(_of_partition(delta, step, what, change), since)
        elif before.recovering and not after.recovering:
            yield _of_partition(delta, step, ClusterEventKind.RECOVERED)

    def _replicas(
        self, delta: PartitionDelta, before: PartitionImage, after: PartitionImage, step: Step
    ) -> Iterator[Event]:
        was, moving = _moving(before), _moving(after)
        if moving and not was:
            yield _of_partition(delta, step, ClusterEventKind.REASSIGNMENT_BEGUN, moving)
        elif was and not moving:
            since = self._reassigning_since.pop((delta.topic, delta.partition), None)
            ended = _of_partition(
                delta, step, ClusterEventKind.REASSIGNMENT_ENDED, f"replicas {_listed(after.replicas)}"
            )
            yield self._ending(ended, since)
        elif was != moving:
            yield _of_partition(delta, step, ClusterEventKind.REASSIGNMENT_CHANGED, moving)
        elif before.replicas != after.replicas:
            detail = f"{_listed(before.replicas)} → {_listed(after.replicas)}"
            yield _of_partition(delta, step, ClusterEventKind.REPLICAS_CHANGED, detail)

    def _ending(self, event: Event, since: TimeMs | None) -> Event:
        """Return an event with how long what it ends has lasted since then; as it is if that is not known."""
        if since is None:
            return event
        lasted_ms = DurationMs(max(0, event.time_ms - since))  # The next controller's clock may be behind.
        if since == self._snapshot_ms:
            return attrs.evolve(event, duration_ms_min=lasted_ms)
        return attrs.evolve(event, duration_ms=lasted_ms)


def _of_partition(delta: PartitionDelta, step: Step, what: ClusterEventKind, detail: str = "") -> Event:
    subject = f"{delta.topic}-{delta.partition}"
    return Event(step.offset, step.time_ms, what, subject, detail, delta.topic, delta.partition)


def _isr(delta: PartitionDelta, before: PartitionImage, after: PartitionImage, step: Step) -> Event:
    left = tuple(each for each in before.isr if each not in after.isr)
    joined = tuple(each for each in after.isr if each not in before.isr)
    what = (
        ClusterEventKind.ISR_CHANGED
        if left and joined
        else ClusterEventKind.ISR_SHRUNK
        if left
        else ClusterEventKind.ISR_GROWN
    )
    parts = [f"{_listed(before.isr)} → {_listed(after.isr)}"]
    parts += [f"left: {_listed(left)}"] if left else []
    parts += [f"joined: {_listed(joined)}"] if joined else []
    return _of_partition(delta, step, what, "; ".join(parts))


def _setting(delta: ConfigDelta, step: Step) -> Event:
    is_topic = delta.resource.type == RESOURCE_TOPIC
    shown = [("not set" if each is None else each) if is_topic else "…" for each in (delta.before, delta.after)]
    detail = f"{delta.name}: {shown[0]} → {shown[1]}" if is_topic else _hidden(delta)
    topic = delta.resource.name if is_topic else None
    return Event(step.offset, step.time_ms, ClusterEventKind.SETTING_CHANGED, _resource(delta.resource), detail, topic)


def _hidden(delta: ConfigDelta) -> str:
    return f"{delta.name} {'taken away' if delta.after is None else 'set' if delta.before is None else 'changed'}"


def _resource(resource: Resource) -> str:
    if resource.type == RESOURCE_TOPIC:
        return resource.name
    if resource.type == RESOURCE_BROKER:
        return "all brokers" if resource.name == CLUSTER_DEFAULT else f"broker {resource.name}"
    return f"resource {resource.name}"


def _registered(broker: BrokerImage) -> str:
    return f"epoch {broker.epoch}" + ("" if broker.rack is None else f", rack {broker.rack}")


def _moving(partition: PartitionImage) -> str:
    parts = [f"adding {_listed(partition.adding)}"] if partition.adding else []
    return ", ".join(parts + ([f"removing {_listed(partition.removing)}"] if partition.removing else []))


def _leader_text(leader: BrokerId) -> str:
    return "none" if leader == NO_LEADER else str(leader)


def _listed(members: tuple[BrokerId, ...]) -> str:
    return ", ".join(map(str, members)) or "none"
