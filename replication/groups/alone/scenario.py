"""Define a scenario of one group as data: its members, topics and events; the same for every protocol.

Constraints: names of members are distinct; an event names a member of the scenario, a topic, or nothing. A scenario
starts at 0 and ends after `duration_ms`.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.errors import UsageError
from broker.units import MINUTE_MS, DurationMs
from placement.consumer.registry import load_assignor
from replication.groups.client.assigning import SERVER_NAMES
from replication.groups.client.options import ClientOptions
from replication.groups.client.protocols import DEFAULT_ASSIGNORS, GroupProtocol, takes
from replication.groups.common.events import Event, EventKind

MEMBER_COUNT_MAX: Final = 200
PARTITION_COUNT_MAX: Final = 2_000
DURATION_MS_MAX: Final = 7 * 24 * 60 * MINUTE_MS
"""The longest scenario, a week, as long as Kafka retains offsets by default."""


@attrs.frozen(kw_only=True)
class MemberSpec:
    """Describe one member; its process starts with its first START event."""

    name: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    revoke_ms: DurationMs = attrs.field(default=DurationMs(0))
    remembers_partitions: bool = False
    max_poll_interval_ms: DurationMs | None = None
    poll_ms: DurationMs | None = None
    """The time that the application works on the records of a poll; None for the scenario's setting."""

    def options(self, common: ClientOptions) -> ClientOptions:
        """Return the member's settings: its own, and those of `common` that it does not set."""
        own = {"max_poll_interval_ms": self.max_poll_interval_ms, "poll_ms": self.poll_ms}
        return attrs.evolve(common, **{name: value for name, value in own.items() if value is not None})


@attrs.frozen(kw_only=True)
class SingleGroupScenario:
    """Hold topics with partition counts, members, events, and settings that differ from Kafka's defaults."""

    name: str
    title: str
    topics: tuple[tuple[str, int], ...]
    members: tuple[MemberSpec, ...]
    events: tuple[Event, ...]
    duration_ms: DurationMs
    how: str = ""
    protocols: tuple[GroupProtocol, ...] = tuple(GroupProtocol)
    """The protocols that the scenario is about."""
    client: ClientOptions = attrs.field(factory=ClientOptions)
    offsets_retention_ms: DurationMs | None = None
    records_per_second: int = 20
    restart_ms: DurationMs | None = None
    """The time after which a supervisor restarts a process that ended by itself; None for never."""
    assignor: str | None = None
    """The assignor of the eager and the consumer protocol; None for the default."""
    assignment_interval_ms: DurationMs | None = None
    """The shortest time between two targets of the consumer protocol (KIP-1263); None for the release's default."""

    def assignor_of(self, protocol: GroupProtocol) -> str:
        """Return the name of the assignor; raise UsageError if the protocol does not take that assignor."""
        if self.assignor is None:
            return DEFAULT_ASSIGNORS[protocol]
        load_assignor(self.assignor)
        if not takes(protocol, self.assignor):
            raise UsageError(f"a group of the {protocol.value} protocol cannot be assigned by {self.assignor!r}")
        return self.assignor

    def client_assignors(self, protocol: GroupProtocol) -> tuple[str, ...]:
        """Return the assignors that members name: their own, or the coordinator's by Kafka's name for it."""
        name = self.assignor_of(protocol)
        return (SERVER_NAMES.get(name, name),) if protocol is GroupProtocol.CONSUMER else (name,)

    def server_assignor(self, protocol: GroupProtocol) -> str:
        """Return the name of the coordinator's assignor, which a classic group never uses."""
        return (
            self.assignor_of(protocol)
            if protocol is GroupProtocol.CONSUMER
            else DEFAULT_ASSIGNORS[GroupProtocol.CONSUMER]
        )

    def check(self) -> None:
        """Raise UsageError for a scenario that names an absent member or topic, or exceeds a limit."""
        names = [member.name for member in self.members]
        if len(names) != len(set(names)):
            raise UsageError(f"scenario {self.name!r}: a member is there twice")
        _check_count("members", len(names), MEMBER_COUNT_MAX)
        _check_count("milliseconds", self.duration_ms, DURATION_MS_MAX)
        _check_count("partitions", sum(count for _, count in self.topics), PARTITION_COUNT_MAX)
        topics = {name for name, _ in self.topics}
        for event in self.events:
            is_of_topic = event.kind is EventKind.ADD_PARTITIONS
            known = topics if is_of_topic else set(names)
            if event.kind is not EventKind.FAILOVER and event.target not in known:
                what = "topic" if is_of_topic else "member"
                raise UsageError(f"scenario {self.name!r}: there is no {what} {event.target!r} for {event.kind.value}")
            if is_of_topic:
                _check_count("partitions", event.count, PARTITION_COUNT_MAX)


def _check_count(what: str, count: int, count_max: int) -> None:
    if not 1 <= count <= count_max:
        raise UsageError(f"{count} {what} cannot be played; allowed are 1 to {count_max}")
