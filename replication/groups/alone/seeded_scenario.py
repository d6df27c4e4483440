"""Draw a scenario from a seed: which members join, leave, crash, stop polling and come back, and when.

At least one member runs at any time. In the first minute members only start, and in the last three nothing happens.

    >>> scenario = seeded_scenario(1, Shape(members=4, partitions=12))
    >>> len(scenario.members), scenario.topics, str(scenario.events[0])
    (4, (('records', 12),), 'start c01')
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import SplitMix64, derive
from broker.errors import UsageError
from broker.units import MINUTE_MS, SECOND_MS, DurationMs, TimeMs
from broker.wording import counted
from replication.groups.alone.scenario import MemberSpec, SingleGroupScenario
from replication.groups.plan import Event, EventKind

_PLAN_STREAM: Final = 10
_BETWEEN_MS_MEAN: Final = 10 * SECOND_MS
_BETWEEN_MS_MAX: Final = MINUTE_MS
_QUIET_MS: Final = 3 * MINUTE_MS
_STATIC_EVERY: Final = 3
_RESTART_MS: Final = DurationMs(30 * SECOND_MS)
_TOPIC: Final = "records"
_ROLLS: Final[Mapping[EventKind, int]] = MappingProxyType(
    {
        EventKind.CRASH: 3,
        EventKind.CLOSE: 3,
        EventKind.BOUNCE: 4,
        EventKind.STALL: 2,
        EventKind.FREEZE: 2,
        EventKind.ADD_PARTITIONS: 1,
        EventKind.FAILOVER: 2,
        EventKind.HOLD_COMMITS: 3,
        EventKind.LOSE_ANSWER: 1,
    }
)
"""How often each kind comes, in parts of all."""


@attrs.frozen(kw_only=True)
class Shape:
    """Hold the size of a drawn scenario: members, partitions of the topic, minutes."""

    members: int = 4
    partitions: int = 12
    minutes: int = 10


def seeded_scenario(seed: int, shape: Shape) -> SingleGroupScenario:
    """Return the scenario of this seed; raise UsageError if it is too short for any event."""
    duration_ms = DurationMs(shape.minutes * MINUTE_MS)
    minutes = counted(shape.minutes, "minute")
    if duration_ms <= _QUIET_MS + MINUTE_MS:
        verb = "is" if shape.minutes == 1 else "are"
        raise UsageError(f"{minutes} {verb} too few for a seeded life; at least 5 are needed")
    members = tuple(
        MemberSpec(
            name=f"c{number:02d}",
            topics=(_TOPIC,),
            instance_id=f"i{number:02d}" if number % _STATIC_EVERY == _STATIC_EVERY - 1 else None,
        )
        for number in range(shape.members)
    )
    return SingleGroupScenario(
        name=f"seed {seed}",
        title=f"{counted(shape.members, 'member')}, {counted(shape.partitions, 'partition')}, {minutes}",
        topics=((_TOPIC, shape.partitions),),
        members=members,
        events=_Planner(seed, shape, [member.name for member in members], duration_ms - _QUIET_MS).events(),
        duration_ms=duration_ms,
        restart_ms=_RESTART_MS,
    )


class _Planner:
    """Draw events, and track which members are free for the next one."""

    def __init__(self, seed: int, shape: Shape, names: list[str], end_ms: int) -> None:
        self._entropy = SplitMix64(derive(seed, _PLAN_STREAM))
        self._end_ms = end_ms
        self._partition_count = shape.partitions
        self._events: list[Event] = []
        self._free_ms = dict.fromkeys(names, 0)
        """From when on nothing else is going on with each member."""

    def events(self) -> tuple[Event, ...]:
        """Return the events in order of time."""
        for name in self._free_ms:
            self._add(self._entropy.next_int_bound(5 * SECOND_MS), EventKind.START, name)
        now_ms = MINUTE_MS
        while (now_ms := now_ms + self._between_ms()) < self._end_ms:
            self._draw(now_ms, self._kind())
        return tuple(sorted(self._events, key=lambda event: event.at_ms))

    def _between_ms(self) -> int:
        return SECOND_MS + min(exponential(self._entropy, _BETWEEN_MS_MEAN), _BETWEEN_MS_MAX)

    def _kind(self) -> EventKind:
        left = self._entropy.next_int_bound(sum(_ROLLS.values()))
        for kind, parts in _ROLLS.items():
            if left < parts:
                return kind
            left -= parts
        raise AssertionError(left)

    def _draw(self, now_ms: int, kind: EventKind) -> None:
        free = [name for name, free_ms in self._free_ms.items() if free_ms <= now_ms]
        if kind is EventKind.FAILOVER:
            self._add(now_ms, kind, for_ms=2 * SECOND_MS + self._entropy.next_int_bound(8 * SECOND_MS))
        elif kind is EventKind.ADD_PARTITIONS:
            self._partition_count += 1 + self._entropy.next_int_bound(2)
            self._add(now_ms, kind, _TOPIC, count=self._partition_count)
        elif len(free) > 1:
            name = free[self._entropy.next_int_bound(len(free))]
            for_ms = self._lasting_ms(kind)
            is_back = kind in (EventKind.CRASH, EventKind.CLOSE)
            self._add(now_ms, kind, name, for_ms=0 if is_back else for_ms)
            if is_back:
                self._add(now_ms + for_ms, EventKind.START, name)
            self._free_ms[name] = now_ms + for_ms + 10 * SECOND_MS

    def _lasting_ms(self, kind: EventKind) -> int:
        """Return a duration in ms: bounces mostly within a session, stalls mostly beyond max.poll.interval.ms."""
        match kind:
            case EventKind.BOUNCE:
                return 5 * SECOND_MS + exponential(self._entropy, 10 * SECOND_MS)
            case EventKind.STALL:
                return 4 * MINUTE_MS + self._entropy.next_int_bound(2 * MINUTE_MS)
            case EventKind.FREEZE:
                return 20 * SECOND_MS + self._entropy.next_int_bound(60 * SECOND_MS)
            case EventKind.LOSE_ANSWER:
                return 0
            case _:
                return 10 * SECOND_MS + exponential(self._entropy, 40 * SECOND_MS)

    def _add(self, at_ms: int, kind: EventKind, target: str = "", *, for_ms: int = 0, count: int = 0) -> None:
        # What would begin in the quiet end does not, but whoever is gone comes back before it.
        at_ms = min(at_ms, self._end_ms)
        for_ms = min(for_ms, self._end_ms - at_ms)
        self._events.append(Event(TimeMs(at_ms), kind, DurationMs(for_ms), target, count))
