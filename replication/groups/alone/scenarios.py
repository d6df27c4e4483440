"""List the named scenarios of one group: the events, and the known outcome.

Source: each scenario names its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.units import MINUTE_MS, SECOND_MS, DurationMs, TimeMs
from replication.groups.alone.scenario import MemberSpec, SingleGroupScenario
from replication.groups.client.options import ClientOptions
from replication.groups.client.protocols import GroupProtocol
from replication.groups.common.events import Event, EventKind

_CLASSIC: Final = (GroupProtocol.EAGER, GroupProtocol.COOPERATIVE)


def _event(at_ms: int, kind: EventKind, target: str = "", for_ms: int = 0, count: int = 0) -> Event:
    return Event(at_ms=TimeMs(at_ms), kind=kind, target=target, for_ms=DurationMs(for_ms), count=count)


def _members(*names: str) -> tuple[MemberSpec, ...]:
    return tuple(MemberSpec(name=name, topics=("t",)) for name in names)


def _static(*names: str) -> tuple[MemberSpec, ...]:
    return tuple(MemberSpec(name=name, topics=("t",), instance_id=f"i-{name}") for name in names)


def _starts(*names: str) -> tuple[Event, ...]:
    return tuple(_event(place * SECOND_MS, EventKind.START, name) for place, name in enumerate(names))


def _scenario(
    name: str, title: str, members: tuple[MemberSpec, ...], events: tuple[Event, ...], *, minutes: int = 4
) -> SingleGroupScenario:
    """Return a scenario on the six partitions of one topic."""
    return SingleGroupScenario(
        name=name,
        title=title,
        topics=(("t", 6),),
        members=members,
        events=events,
        duration_ms=DurationMs(minutes * MINUTE_MS),
    )


_THREE: Final = ("a", "b", "c")

S60: Final = attrs.evolve(
    _scenario("S60", "a group's first members", _members(*_THREE), _starts(*_THREE), minutes=1),
    how="Three members come 1 s apart. The first waits 3 s for others, and as they come 3 s more: one generation.",
    protocols=_CLASSIC,
)
S61: Final = attrs.evolve(
    _scenario(
        "S61",
        "a member dies",
        _members(*_THREE),
        (*_starts(*_THREE), _event(MINUTE_MS, EventKind.CRASH, "b")),
    ),
    how="b is silent from 60 s on; 45 s after its last heartbeat it is out, and the others share what it had.",
)
S62: Final = attrs.evolve(
    _scenario(
        "S62",
        "an application that does not poll",
        _members(*_THREE),
        (*_starts(*_THREE), _event(MINUTE_MS, EventKind.STALL, "b", 400 * SECOND_MS)),
        minutes=10,
    ),
    how="b works on one batch for 400 s. After 300 s its consumer leaves the group; when it polls again it joins.",
)
S63: Final = attrs.evolve(
    _scenario(
        "S63",
        "a zombie commits",
        (
            MemberSpec(name="a", topics=("t",), instance_id="i-a", max_poll_interval_ms=DurationMs(20 * SECOND_MS)),
            MemberSpec(name="b", topics=("t",), max_poll_interval_ms=DurationMs(20 * SECOND_MS)),
        ),
        (
            _event(0, EventKind.START, "a"),
            _event(MINUTE_MS, EventKind.FREEZE, "a", 40 * SECOND_MS),
            _event(MINUTE_MS + SECOND_MS, EventKind.START, "b"),
        ),
    ),
    how="a, static, stands still while b's joining makes a new generation; when it goes on its commit is refused.",
    protocols=_CLASSIC,
)
S64: Final = attrs.evolve(
    _scenario(
        "S64",
        "the leader dies before it assigns",
        tuple(attrs.evolve(each, max_poll_interval_ms=DurationMs(20 * SECOND_MS)) for each in _members(*_THREE)),
        (*_starts(*_THREE), _event(2 * SECOND_MS, EventKind.CRASH_LEADING, "a")),
    ),
    how="a is told that it leads, and dies. Its time to sync is max.poll.interval.ms, 20 s here; then another leads.",
    protocols=_CLASSIC,
)
S65: Final = attrs.evolve(
    _scenario(
        "S65",
        "a static member is started anew",
        _static(*_THREE),
        (*_starts(*_THREE), _event(MINUTE_MS, EventKind.BOUNCE, "b", 20 * SECOND_MS)),
    ),
    how="b ends and is back after 20 s, within its session: it gets what it had, and the others notice nothing.",
)
S65_TWIN: Final = attrs.evolve(
    _scenario(
        "S65-twin",
        "two processes with one group.instance.id",
        _static(*_THREE),
        (*_starts(*_THREE), _event(MINUTE_MS, EventKind.TWIN, "b")),
    ),
    how="Classic: the newer process takes the place of the older, which is fenced. Consumer: the newer is refused.",
)
S66: Final = attrs.evolve(
    _scenario(
        "S66",
        "partitions move to a new member",
        _members(*_THREE),
        (*_starts("a", "b"), _event(MINUTE_MS, EventKind.START, "c")),
    ),
    how="c comes at 60 s. Cooperative: a and b give up one partition each, and in a second rebalance c gets them.",
)
S67: Final = attrs.evolve(
    _scenario(
        "S67",
        "a partition is waited for",
        (attrs.evolve(_members("a")[0], revoke_ms=DurationMs(10 * SECOND_MS)), *_members("b")),
        (_event(0, EventKind.START, "a"), _event(MINUTE_MS, EventKind.START, "b")),
    ),
    how="a takes 10 s to let three partitions go; b has its epoch at once, and the partitions when a reports.",
    protocols=(GroupProtocol.CONSUMER,),
)
S68: Final = attrs.evolve(
    _scenario(
        "S68",
        "given back before it was given up",
        (attrs.evolve(_members("a")[0], revoke_ms=DurationMs(30 * SECOND_MS)), *_members("b", "c")),
        (
            _event(0, EventKind.START, "a"),
            _event(MINUTE_MS, EventKind.START, "b"),
            _event(MINUTE_MS + 10 * SECOND_MS, EventKind.CLOSE, "b"),
            _event(MINUTE_MS + 15 * SECOND_MS, EventKind.START, "c"),
        ),
    ),
    how="While a is still letting go what b shall have, b leaves and a shall keep it, then c comes. Nobody shares.",
    protocols=(GroupProtocol.CONSUMER,),
)
S69: Final = attrs.evolve(
    _scenario(
        "S69",
        "the answer that brings a new epoch is lost",
        _members("a", "b"),
        (
            _event(0, EventKind.START, "a"),
            _event(MINUTE_MS, EventKind.START, "b"),
            _event(MINUTE_MS, EventKind.LOSE_ANSWER, "a"),
        ),
    ),
    how="a's answer is lost with the epoch that it was to have; it reports in its former epoch, and is not fenced.",
    protocols=(GroupProtocol.CONSUMER,),
)
S70: Final = attrs.evolve(
    _scenario(
        "S70",
        "too slow to let go",
        (attrs.evolve(_members("a")[0], revoke_ms=DurationMs(400 * SECOND_MS)), *_members("b")),
        (_event(0, EventKind.START, "a"), _event(MINUTE_MS, EventKind.START, "b")),
        minutes=12,
    ),
    how="a takes 400 s to let go. After 300 s it is fenced and b has everything; a is back with epoch 0 later.",
    protocols=(GroupProtocol.CONSUMER,),
)
S72: Final = attrs.evolve(
    _scenario(
        "S72",
        "a rebalance outlasts the retention of offsets",
        tuple(attrs.evolve(each, max_poll_interval_ms=DurationMs(20 * MINUTE_MS)) for each in _members("a", "b", "c")),
        (
            *_starts("a", "b"),
            _event(2 * MINUTE_MS, EventKind.STALL, "a", 16 * MINUTE_MS),
            _event(3 * MINUTE_MS, EventKind.START, "c"),
        ),
        minutes=25,
    ),
    how="Offsets are kept for 1 minute. While a keeps the group rebalancing for 15, nothing is forgotten.",
    offsets_retention_ms=DurationMs(MINUTE_MS),
    protocols=(GroupProtocol.EAGER,),
)
INCIDENT: Final = SingleGroupScenario(
    name="shared-group-id",
    title="three programs of different topics under one group.id",
    how="reads-c comes while reads-b works on a batch of 30 s and cannot follow. reads-a has given up its partitions, "
    "and asks at its next batch for one of them. Where nothing is given up that need not be, nothing happens.",
    topics=(("a", 2), ("b", 2), ("c", 2)),
    members=(
        MemberSpec(name="reads-a", topics=("a",), remembers_partitions=True),
        MemberSpec(name="reads-b", topics=("b",), poll_ms=DurationMs(30 * SECOND_MS)),
        MemberSpec(name="reads-c", topics=("c",)),
    ),
    events=(
        _event(0, EventKind.START, "reads-a"),
        _event(SECOND_MS, EventKind.START, "reads-b"),
        _event(130 * SECOND_MS, EventKind.START, "reads-c"),
    ),
    duration_ms=DurationMs(6 * MINUTE_MS),
    client=ClientOptions(poll_ms=DurationMs(5 * SECOND_MS)),
)
FAILOVER: Final = attrs.evolve(
    _scenario(
        "failover",
        "the coordinator dies, and the next one reads its records",
        _members(*_THREE),
        (*_starts(*_THREE), _event(MINUTE_MS, EventKind.FAILOVER, for_ms=8 * SECOND_MS)),
        minutes=3,
    ),
    how="For 8 s nobody coordinates. Then all go on in their generation: nothing moves, and no commit is lost.",
)
JOIN_AND_CRASH: Final = attrs.evolve(
    _scenario(
        "join-and-crash",
        "one member joins, another dies",
        _members("a", "b", "c"),
        (
            *_starts("a", "b"),
            _event(MINUTE_MS, EventKind.START, "c"),
            _event(100 * SECOND_MS, EventKind.CRASH, "a"),
        ),
        minutes=3,
    ),
    how="Applications work 5 s on each batch. The same joining and dying under each protocol: what stops, how long.",
    client=ClientOptions(poll_ms=DurationMs(5 * SECOND_MS)),
)

_ALL: Final = (S60, S61, S62, S63, S64, S65, S65_TWIN, S66, S67, S68, S69, S70, S72, FAILOVER, INCIDENT, JOIN_AND_CRASH)
SCENARIOS: Final[Mapping[str, SingleGroupScenario]] = {scenario.name: scenario for scenario in _ALL}
"""Every named scenario."""
