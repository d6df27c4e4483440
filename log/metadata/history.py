"""What happened to a cluster, told from its metadata log: one event a change.

Decides which changes are worth a line, and what each is called.

    leader elected      another leader, or the first one after none
    leader re-elected   the same leader in a new epoch
    leader lost         there is none now
    unclean election    the new leader was neither in the ISR nor among the eligible leaders before, or has to recover,
                        as the controller says: committed records may be gone
    recovered           a leader that was elected uncleanly has said that it has recovered
    ISR shrunk, grown, changed       and who left and joined
    reassignment begun, ended, changed; replicas changed      the last without a reassignment
    topic created, topic deleted, partition added
    broker registered, unregistered, fenced, unfenced (after so long), stopping (in controlled shutdown)
    broker directories changed
    setting changed, feature changed, quota changed, access changed, controller elected

Constraints: what a snapshot says at the beginning of a log is how things stood and no event. A deleted topic is one
event, as is a created one, whose partitions are counted. Values of settings are told of topics only: those of
brokers, clients and users may be secrets.

Example: an ISR that went from 1, 2, 3 to 1, 2 is Event(what=What.ISR_SHRUNK, subject="orders-3", detail="1, 2, 3 →
1, 2; left: 3").

Left out: NoOp records, producer ids, directories of single replicas, and eligible leaders beside the ISR.

Source: ours; what is unclean follows org.apache.kafka.metadata.PartitionRegistration.electionWasClean, 4.0, and
KIP-966.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import attrs

from broker.ids import NO_LEADER, BrokerId, Offset, PartitionId
from broker.units import DurationMs, TimeMs
from broker.values import value
from log.metadata.deltas import (
    BrokerDelta,
    ConfigDelta,
    ControllerDelta,
    FeatureDelta,
    OtherDelta,
    PartitionDelta,
    TopicDelta,
)
from log.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER, RESOURCE_TOPIC, BrokerImage, PartitionImage, Resource
from log.metadata.replay import Step
from log.metadata.schemas import RecordType


class What(enum.Enum):
    """What happened; the value is how people read it."""

    LEADER_ELECTED = "leader elected"
    """Another broker leads."""
    LEADER_REELECTED = "leader re-elected"
    """The same broker leads in a new epoch."""
    LEADER_LOST = "leader lost"
    """Nobody leads."""
    UNCLEAN_ELECTION = "unclean election"
    """The leader was not in sync before: data may be lost."""
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
    """One thing that happened: where in the log, when, what, to whom, and before and after in words."""

    offset: Offset
    time_ms: TimeMs
    what: What
    subject: str
    detail: str = ""
    topic: str | None = None
    partition: PartitionId | None = None
    broker: BrokerId | None = None
    duration_ms: DurationMs | None = None
    """How long what ends here has lasted: a fencing, a time without leader, a reassignment."""


_ACCESS: Final = {
    RecordType.ACCESS_CONTROL_ENTRY_RECORD: "rule added",
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD: "rule removed",
    RecordType.USER_SCRAM_CREDENTIAL_RECORD: "credential set",
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD: "credential removed",
    RecordType.DELEGATION_TOKEN_RECORD: "token set",
    RecordType.REMOVE_DELEGATION_TOKEN_RECORD: "token removed",
}


@attrs.define
class History:
    """Turns steps into events. It keeps since when things have been as they are, to tell how long they lasted."""

    _fenced_since: dict[BrokerId, TimeMs] = attrs.field(factory=dict)
    _leaderless_since: dict[tuple[str, PartitionId], TimeMs] = attrs.field(factory=dict)
    _reassigning_since: dict[tuple[str, PartitionId], TimeMs] = attrs.field(factory=dict)
    _new_topic: tuple[str, TimeMs] | None = None

    def events(self, step: Step) -> Iterator[Event]:
        """Yield what happened in a step, in order."""
        for delta in step.deltas:
            found = self._of(delta, step)
            if not step.from_snapshot:
                yield from found
            else:
                for _ in found:  # What stood so before still has a beginning.
                    pass

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
            detail = f"{delta.before} → {delta.after}"
            yield Event(step.offset, step.time_ms, What.FEATURE_CHANGED, delta.name, detail)
        elif isinstance(delta, ControllerDelta):
            subject = f"controller {delta.leader}"
            yield Event(step.offset, step.time_ms, What.CONTROLLER_ELECTED, subject, f"epoch {delta.epoch}")
        elif isinstance(delta, OtherDelta):
            what = What.ACCESS_CHANGED if delta.type in _ACCESS else What.QUOTA_CHANGED
            yield Event(step.offset, step.time_ms, what, delta.subject, _ACCESS.get(delta.type, ""))

    def _topic(self, delta: TopicDelta, step: Step) -> Event:
        if not delta.deleted:
            self._new_topic = (delta.name, step.time_ms)
            return Event(step.offset, step.time_ms, What.TOPIC_CREATED, delta.name, f"id {delta.id}", delta.name)
        detail = f"{delta.partition_count} partition{'' if delta.partition_count == 1 else 's'}"
        return Event(step.offset, step.time_ms, What.TOPIC_DELETED, delta.name, detail, delta.name)

    def _broker(self, delta: BrokerDelta, step: Step) -> Iterator[Event]:
        before, after = delta.before, delta.after
        broker = after or before
        assert broker is not None

        def event(what: What, detail: str = "", duration_ms: DurationMs | None = None) -> Event:
            subject = f"broker {broker.id}"
            return Event(step.offset, step.time_ms, what, subject, detail, broker=broker.id, duration_ms=duration_ms)

        if after is None:
            self._fenced_since.pop(broker.id, None)
            yield event(What.BROKER_UNREGISTERED)
            return
        if before is None or before.epoch != after.epoch:
            yield event(What.BROKER_REGISTERED, _registered(after))
        elif before.directories != after.directories:
            yield event(What.BROKER_DIRECTORIES, f"{len(before.directories)} → {len(after.directories)} online")
        was_fenced = before is not None and before.fenced
        if after.in_controlled_shutdown and not (before is not None and before.in_controlled_shutdown):
            yield event(What.BROKER_STOPPING)
        if after.fenced and not was_fenced:
            self._fenced_since[broker.id] = step.time_ms
            if before is not None:  # A new broker is fenced until it has caught up.
                yield event(What.BROKER_FENCED)
        elif was_fenced and not after.fenced:
            yield event(What.BROKER_UNFENCED, duration_ms=_lasted(self._fenced_since.pop(broker.id, None), step))

    def _partition(self, delta: PartitionDelta, step: Step) -> Iterator[Event]:
        key, before, after = (delta.topic, delta.partition), delta.before, delta.after
        if after is None:  # It went with its topic, which is told.
            self._leaderless_since.pop(key, None)
            self._reassigning_since.pop(key, None)
            return
        if after.leader == NO_LEADER and (before is None or before.leader != NO_LEADER):
            self._leaderless_since[key] = step.time_ms
        if before is None:
            if self._new_topic != (delta.topic, step.time_ms):
                detail = f"replicas {_listed(after.replicas)}"
                yield _of_partition(delta, step, What.PARTITION_ADDED, detail)
            return
        yield from self._leader(delta, before, after, step)
        if set(before.isr) != set(after.isr):
            yield _isr(delta, before, after, step)
        yield from self._replicas(delta, before, after, step)

    def _leader(
        self, delta: PartitionDelta, before: PartitionImage, after: PartitionImage, step: Step
    ) -> Iterator[Event]:
        if before.leader_epoch != after.leader_epoch:
            change = f"{_led(before.leader)} → {_led(after.leader)}, epoch {after.leader_epoch}"
            duration_ms = None
            if after.leader == NO_LEADER:
                what = What.LEADER_LOST if before.leader != NO_LEADER else What.LEADER_REELECTED
            else:
                key = (delta.topic, delta.partition)
                duration_ms = _lasted(self._leaderless_since.pop(key, None), step)
                what = What.LEADER_REELECTED if after.leader == before.leader else What.LEADER_ELECTED
                if _is_unclean(before, after):
                    what = What.UNCLEAN_ELECTION
                    change += f"; in sync before: {_listed(before.isr)}, eligible: {_listed(before.elr)}"
            yield _of_partition(delta, step, what, change, duration_ms)
        elif before.recovering and not after.recovering:
            yield _of_partition(delta, step, What.RECOVERED)

    def _replicas(
        self, delta: PartitionDelta, before: PartitionImage, after: PartitionImage, step: Step
    ) -> Iterator[Event]:
        key = (delta.topic, delta.partition)
        was, moving = _moving(before), _moving(after)
        if moving and not was:
            self._reassigning_since[key] = step.time_ms
            yield _of_partition(delta, step, What.REASSIGNMENT_BEGUN, moving)
        elif was and not moving:
            duration_ms = _lasted(self._reassigning_since.pop(key, None), step)
            detail = f"replicas {_listed(after.replicas)}"
            yield _of_partition(delta, step, What.REASSIGNMENT_ENDED, detail, duration_ms)
        elif was != moving:
            yield _of_partition(delta, step, What.REASSIGNMENT_CHANGED, moving)
        elif before.replicas != after.replicas:
            detail = f"{_listed(before.replicas)} → {_listed(after.replicas)}"
            yield _of_partition(delta, step, What.REPLICAS_CHANGED, detail)


def _is_unclean(before: PartitionImage, after: PartitionImage) -> bool:
    """Tell whether a new leader may have less than was committed.

    It was neither in sync nor eligible before, or the controller says itself that it has to recover: so of a broker
    that lost its place among the eligible ones when it came back from an unclean shutdown.
    """
    if after.leader == NO_LEADER or before.leader_epoch == after.leader_epoch:
        return False
    return after.leader not in {*before.isr, *before.elr} or (after.recovering and not before.recovering)


def _of_partition(
    delta: PartitionDelta, step: Step, what: What, detail: str = "", duration_ms: DurationMs | None = None
) -> Event:
    subject = f"{delta.topic}-{delta.partition}"
    return Event(
        step.offset, step.time_ms, what, subject, detail, delta.topic, delta.partition, duration_ms=duration_ms
    )


def _isr(delta: PartitionDelta, before: PartitionImage, after: PartitionImage, step: Step) -> Event:
    left = tuple(each for each in before.isr if each not in after.isr)
    joined = tuple(each for each in after.isr if each not in before.isr)
    what = What.ISR_CHANGED if left and joined else What.ISR_SHRUNK if left else What.ISR_GROWN
    parts = [f"{_listed(before.isr)} → {_listed(after.isr)}"]
    parts += [f"left: {_listed(left)}"] if left else []
    parts += [f"joined: {_listed(joined)}"] if joined else []
    return _of_partition(delta, step, what, "; ".join(parts))


def _setting(delta: ConfigDelta, step: Step) -> Event:
    is_topic = delta.resource.type == RESOURCE_TOPIC
    shown = [("not set" if each is None else each) if is_topic else "…" for each in (delta.before, delta.after)]
    detail = f"{delta.name}: {shown[0]} → {shown[1]}" if is_topic else _hidden(delta)
    topic = delta.resource.name if is_topic else None
    return Event(step.offset, step.time_ms, What.SETTING_CHANGED, _resource(delta.resource), detail, topic)


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


def _led(leader: BrokerId) -> str:
    return "none" if leader == NO_LEADER else str(leader)


def _listed(members: tuple[BrokerId, ...]) -> str:
    return ", ".join(map(str, members)) or "none"


def _lasted(since: TimeMs | None, step: Step) -> DurationMs | None:
    return None if since is None else DurationMs(step.time_ms - since)
