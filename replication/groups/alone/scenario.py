"""Define a scenario of one group as data, the same for every protocol, and read one from JSON.

`brokerside groups simulate --help` shows a file. A key that the format does not have is refused, so that no mistake
stays unnoticed; numbers and the size of the text are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from broker.errors import InputError, UsageError
from broker.partition_faults import fault_of_topic_name
from broker.units import MINUTE_MS, DurationMs, TimeMs
from placement.consumer.registry import load_assignor
from placement.formats.documents import brief, collect, parse_object
from replication.groups.client.assigning import DEFAULT_ASSIGNORS, SERVER_NAMES, GroupProtocol, takes
from replication.groups.client.link import ClientOptions
from replication.groups.plan import Event, EventKind

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


EVENT_COUNT_MAX: Final = 10_000
EVENTS_BYTES_MAX: Final = 16 << 20  # Its members and events, a line each, take a tenth of it.
_RATE_MAX: Final = 100_000
_STORY: Final = frozenset({"minutes", "topics", "members", "events", "records_per_second", "restart_ms"})
_MEMBER: Final = frozenset(
    {"name", "topics", "instance_id", "rack", "revoke_ms", "poll_ms", "max_poll_interval_ms", "remembers_partitions"}
)
_EVENT: Final = frozenset({"at_ms", "kind", "target", "for_ms", "count"})


def read_scenario(data: bytes, *, source: str) -> SingleGroupScenario:
    """Return the scenario that a JSON text describes; raise InputError, which names the mistake and its place."""
    text = collect([data], source=source)
    document = parse_object(text, source=source, shown_by="brokerside groups simulate --help")
    reader = _Reader(source)
    reader.check_keys(document, _STORY, "the scenario")
    minutes = reader.number(document, "minutes", "minutes", high=DURATION_MS_MAX // MINUTE_MS)
    restart_ms = reader.optional_ms(document, "restart_ms", "restart_ms")
    rate = reader.number(document, "records_per_second", "records_per_second", high=_RATE_MAX, default=20)
    scenario = SingleGroupScenario(
        name=source,
        title="events of a file",
        topics=reader.topics(document.get("topics")),
        members=tuple(reader.member(one, place) for place, one in reader.items(document, "members", MEMBER_COUNT_MAX)),
        events=tuple(
            sorted(
                (reader.event(one, place) for place, one in reader.items(document, "events", EVENT_COUNT_MAX)),
                key=lambda event: event.at_ms,
            )
        ),
        duration_ms=DurationMs(minutes * MINUTE_MS),
        records_per_second=rate,
        restart_ms=restart_ms,
    )
    scenario.check()
    return scenario


class _Reader:
    """Read the fields of one file; its errors name the file."""

    def __init__(self, source: str) -> None:
        self._source = source

    def wrong(self, what: str, value: object = None) -> InputError:
        """Return the error that names `what` is wrong."""
        return InputError(what, source=self._source, value=None if value is None else brief(value))

    def check_keys(self, entry: Mapping[str, Any], known: frozenset[str], place: str) -> None:
        """Raise InputError for a key that the format does not have."""
        unknown = sorted(entry.keys() - known)
        if unknown:
            raise self.wrong(f"{place} has a key that is not known; there are {', '.join(sorted(known))}", unknown[0])

    def items(self, document: Mapping[str, Any], key: str, count_max: int) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the objects of a list, each with its place."""
        value = document.get(key)
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.wrong(f"{key} is missing or no list of objects", value)
        if len(value) > count_max:
            raise self.wrong(f"{key} has {len(value)} entries; at most {count_max} are played")
        return [(f"{key}[{place}]", one) for place, one in enumerate(value)]

    def topics(self, value: Any) -> tuple[tuple[str, int], ...]:
        """Return the topics with their partition counts."""
        if not isinstance(value, dict):
            raise self.wrong("topics is missing or no object", value)
        for name in value:
            self._topic(name, "topics")
        return tuple(
            (name, self.number(value, name, f"topics.{name}", low=1, high=PARTITION_COUNT_MAX)) for name in value
        )

    def member(self, entry: Mapping[str, Any], place: str) -> MemberSpec:
        """Return the member that an object describes."""
        self.check_keys(entry, _MEMBER, place)
        topics = entry.get("topics")
        if not isinstance(topics, list) or not topics:
            raise self.wrong(f"{place}.topics is missing or no list of topics", topics)
        clings = entry.get("remembers_partitions", False)
        if not isinstance(clings, bool):
            raise self.wrong(f"{place}.remembers_partitions is neither true nor false", clings)
        return MemberSpec(
            name=self._text(entry, "name", place),
            topics=tuple(self._topic(topic, f"{place}.topics") for topic in topics),
            instance_id=self._text(entry, "instance_id", place) if "instance_id" in entry else None,
            rack=self._text(entry, "rack", place) if "rack" in entry else None,
            revoke_ms=self.optional_ms(entry, "revoke_ms", place) or DurationMs(0),
            poll_ms=self.optional_ms(entry, "poll_ms", place, low=1),
            max_poll_interval_ms=self.optional_ms(entry, "max_poll_interval_ms", place, low=1),
            remembers_partitions=clings,
        )

    def event(self, entry: Mapping[str, Any], place: str) -> Event:
        """Return the event that an object describes."""
        self.check_keys(entry, _EVENT, place)
        kinds = {kind.value: kind for kind in EventKind}
        kind = entry.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            raise self.wrong(f"{place}.kind is not known; there are {', '.join(sorted(kinds))}", kind)
        return Event(
            at_ms=TimeMs(self.number(entry, "at_ms", f"{place}.at_ms", high=DURATION_MS_MAX)),
            kind=kinds[kind],
            target=self._text(entry, "target", place) if "target" in entry else "",
            for_ms=self.optional_ms(entry, "for_ms", place) or DurationMs(0),
            count=self.number(entry, "count", f"{place}.count", high=PARTITION_COUNT_MAX, default=0),
        )

    def number(
        self, entry: Mapping[str, Any], key: str, what: str, *, low: int = 0, high: int, default: int | None = None
    ) -> int:
        """Return a whole number from `low` to `high`, or the default where the key is absent."""
        value = entry.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(f"{what} is no whole number from {low} to {high}", value)
        return value

    def optional_ms(self, entry: Mapping[str, Any], key: str, place: str, *, low: int = 0) -> DurationMs | None:
        """Return a duration in ms, None where the key is absent."""
        if key not in entry:
            return None
        return DurationMs(self.number(entry, key, f"{place}.{key}", low=low, high=DURATION_MS_MAX))

    def _topic(self, value: Any, place: str) -> str:
        fault = fault_of_topic_name(value) if isinstance(value, str) else f"{place} has a name that is no text"
        if fault:
            raise self.wrong(fault, value)
        return str(value)

    def _text(self, entry: Mapping[str, Any], key: str, place: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str) or not value:
            raise self.wrong(f"{place}.{key} is missing or no text", value)
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise self.wrong(f"{place}.{key} has half of a surrogate pair, which is no character", value)
        return value
