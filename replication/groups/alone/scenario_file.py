"""Read a scenario from JSON: topics, members and events.

What it decides: what `brokerside groups simulate --events FILE` reads.

    {"minutes": 4,
     "topics": {"orders": 6},
     "members": [{"name": "a", "topics": ["orders"]},
                 {"name": "b", "topics": ["orders"], "instance_id": "i1", "revoke_ms": 10000}],
     "events": [{"at_ms": 0, "kind": "start", "target": "a"},
                {"at_ms": 60000, "kind": "start", "target": "b"},
                {"at_ms": 90000, "kind": "freeze", "target": "a", "for_ms": 40000},
                {"at_ms": 120000, "kind": "add-partitions", "target": "orders", "count": 8}]}

A member may have `instance_id`, `rack`, `revoke_ms`, `poll_ms`, `max_poll_interval_ms` and `remembers_partitions`. The
scenario may have `records_per_second` (of each partition) and `restart_ms`. Events are taken in order of time.

Constraints: a key that the format does not have is refused, so that no mistake stays unnoticed; numbers and the size of
the text are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker.errors import InputError
from broker.units import MINUTE_MS, DurationMs, TimeMs
from placement.formats.checks import fault_of_topic_name
from placement.formats.documents import brief, collect, parse_object
from replication.groups.alone.scenario import (
    DURATION_MS_MAX,
    MEMBER_COUNT_MAX,
    PARTITION_COUNT_MAX,
    MemberSpec,
    SingleGroupScenario,
)
from replication.groups.common.events import Event, EventKind

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
    """Reads the fields of one file; its errors name the file."""

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
