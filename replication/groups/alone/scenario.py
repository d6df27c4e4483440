"""A group's scenario: who is there, what happens when, and what is to come of it; the same for every protocol.

Decides nothing; it is data.

Constraints: names of members are distinct; an event names a member of the scenario, or a topic, or nobody. A scenario
starts at 0 and ends after `duration_ms`.

Source: ours.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from broker.errors import UsageError
from broker.units import MINUTE_MS, DurationMs, TimeMs
from replication.groups.client.options import ClientOptions

MEMBER_COUNT_MAX: Final = 200
PARTITION_COUNT_MAX: Final = 2_000
DURATION_MS_MAX: Final = 7 * 24 * 60 * MINUTE_MS
"""A week, as offsets are kept: what a virtual clock walks through while somebody waits."""


class Mode(enum.Enum):
    """A protocol that a group can live by; the value is its name for users."""

    EAGER = "eager"
    """Classic; everybody gives up everything and joins."""

    COOPERATIVE = "cooperative"
    """Classic; members keep what nobody else gets (KIP-429)."""

    CONSUMER = "consumer"
    """The coordinator assigns, each member follows at its own pace (KIP-848)."""


class EventKind(enum.Enum):
    """What can happen; the value is its name in files."""

    START = "start"
    """A member's process starts, or starts anew."""

    CLOSE = "close"
    """It ends cleanly: it leaves its group, unless it is static."""

    CRASH = "crash"
    """It is gone from one moment to the next."""

    BOUNCE = "bounce"
    """It ends cleanly, and starts anew after `for_ms`."""

    STALL = "stall"
    """Its application does not poll for `for_ms`; the consumer's own threads go on."""

    FREEZE = "freeze"
    """The whole process stands still for `for_ms`, as in a long garbage collection."""

    CRASH_LEADING = "crash-leading"
    """It is gone as soon as it is told that it leads its group, before it assigns."""

    TWIN = "twin"
    """A second process starts with the same group.instance.id."""

    HOLD_COMMITS = "hold-commits"
    """Its commits of the next `for_ms` arrive only after that."""

    LOSE_ANSWER = "lose-answer"
    """The answer to its next heartbeat is lost, in a consumer group to the next that reports what it owns."""

    ADD_PARTITIONS = "add-partitions"
    """The topic has `count` partitions from now on."""

    FAILOVER = "failover"
    """The coordinator's broker dies; after `for_ms` another one has read its records."""


@attrs.frozen(kw_only=True)
class Event:
    """One thing that happens; `target` is a member or a topic."""

    at_ms: TimeMs
    kind: EventKind
    target: str = ""
    for_ms: DurationMs = attrs.field(default=DurationMs(0))
    count: int = 0

    def __str__(self) -> str:
        lasting = f" for {self.for_ms:,} ms" if self.for_ms else ""
        count = f" to {self.count}" if self.count else ""
        return f"{self.kind.value} {self.target}{count}{lasting}".replace("  ", " ")


@attrs.frozen(kw_only=True)
class Person:
    """A member of the scenario; it appears with its first START."""

    name: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    revoke_ms: DurationMs = attrs.field(default=DurationMs(0))
    remembers_partitions: bool = False
    max_poll_interval_ms: DurationMs | None = None
    poll_ms: DurationMs | None = None
    """How long its application works on what a poll returned, if not as long as the others'."""

    def options(self, common: ClientOptions) -> ClientOptions:
        """Return its settings, of which those that it does not have itself are `common`."""
        own = {"max_poll_interval_ms": self.max_poll_interval_ms, "poll_ms": self.poll_ms}
        return attrs.evolve(common, **{name: value for name, value in own.items() if value is not None})


@attrs.frozen(kw_only=True)
class GroupRunScenario:
    """Topics with their numbers of partitions, members, events; settings that are not Kafka's defaults."""

    name: str
    title: str
    topics: tuple[tuple[str, int], ...]
    people: tuple[Person, ...]
    events: tuple[Event, ...]
    duration_ms: DurationMs
    how: str = ""
    modes: tuple[Mode, ...] = tuple(Mode)
    """The protocols that it is about."""
    client: ClientOptions = attrs.field(factory=ClientOptions)
    offsets_retention_ms: DurationMs | None = None
    records_per_second: int = 20
    restart_ms: DurationMs | None = None
    """After how long a supervisor starts a process again that has ended by itself; None for never."""
    assignor: str | None = None
    """Of the eager and the consumer protocol, where it is not the default."""

    def check(self) -> None:
        """Raise UsageError for what cannot be played: who is not there, what is too many."""
        names = [person.name for person in self.people]
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
