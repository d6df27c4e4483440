"""List the named scenarios of one group: the events, and the known outcome.

Source: each scenario names its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from broker.units import MINUTE_MS, SECOND_MS, DurationMs, TimeMs
from replication.groups.alone.scenario import MemberSpec, SingleGroupScenario
from replication.groups.client.assigning import GroupProtocol
from replication.groups.client.link import ClientOptions
from replication.groups.plan import Event, EventKind

_CLASSIC: Final = (GroupProtocol.EAGER, GroupProtocol.COOPERATIVE)
_CONSUMER: Final = (GroupProtocol.CONSUMER,)
_SLOW: Final = ClientOptions(poll_ms=DurationMs(5 * SECOND_MS))


def _event(at_s: int, kind: EventKind, target: str = "", for_s: int = 0) -> Event:
    return Event(TimeMs(at_s * SECOND_MS), kind, DurationMs(for_s * SECOND_MS), target)


def _starts(names: str) -> tuple[Event, ...]:
    """Return the starts of members, 1 s apart."""
    return tuple(_event(place, EventKind.START, name) for place, name in enumerate(names))


def _members(names: str, **fields: Any) -> tuple[MemberSpec, ...]:
    return tuple(MemberSpec(name=name, topics=("t",), **fields) for name in names)


def _static(names: str) -> tuple[MemberSpec, ...]:
    return tuple(attrs.evolve(member, instance_id=f"i-{member.name}") for member in _members(names))


def _slow_to_revoke(names: str, revoke_s: int) -> tuple[MemberSpec, ...]:
    """Return members of which the first takes a time to let partitions go."""
    first, *others = _members(names)
    return (attrs.evolve(first, revoke_ms=DurationMs(revoke_s * SECOND_MS)), *others)


def _scenario(
    name: str,
    title: str,
    how: str,
    members: tuple[MemberSpec, ...],
    events: Iterable[Event],
    *,
    minutes: int = 4,
    topics: tuple[tuple[str, int], ...] = (("t", 6),),
    **fields: Any,
) -> SingleGroupScenario:
    return SingleGroupScenario(
        name=name,
        title=title,
        how=how,
        topics=topics,
        members=members,
        events=tuple(events),
        duration_ms=DurationMs(minutes * MINUTE_MS),
        **fields,
    )


_ALL: Final = (
    _scenario(
        "S60",
        "a group's first members",
        "Three members come 1 s apart. The first waits 3 s for others, and as they come 3 s more: one generation.",
        _members("abc"),
        _starts("abc"),
        minutes=1,
        protocols=_CLASSIC,
    ),
    _scenario(
        "S61",
        "a member dies",
        "b is silent from 60 s on; 45 s after its last heartbeat it is out, and the others share what it had.",
        _members("abc"),
        (*_starts("abc"), _event(60, EventKind.CRASH, "b")),
    ),
    _scenario(
        "S62",
        "an application that does not poll",
        "b works on one batch for 400 s. After 300 s its consumer leaves the group; when it polls again it joins.",
        _members("abc"),
        (*_starts("abc"), _event(60, EventKind.STALL, "b", 400)),
        minutes=10,
    ),
    _scenario(
        "S63",
        "a zombie commits",
        "a, static, stands still while b's joining makes a new generation; when it goes on its commit is refused.",
        tuple(
            attrs.evolve(member, max_poll_interval_ms=DurationMs(20 * SECOND_MS))
            for member in (*_static("a"), *_members("b"))
        ),
        (*_starts("a"), _event(60, EventKind.FREEZE, "a", 40), _event(61, EventKind.START, "b")),
        protocols=_CLASSIC,
    ),
    _scenario(
        "S64",
        "the leader dies before it assigns",
        "a learns that it leads, and dies. Its time to sync is max.poll.interval.ms, 20 s here; then another leads.",
        _members("abc", max_poll_interval_ms=DurationMs(20 * SECOND_MS)),
        (*_starts("abc"), _event(2, EventKind.CRASH_LEADING, "a")),
        protocols=_CLASSIC,
    ),
    _scenario(
        "S65",
        "a static member is started anew",
        "b ends and is back after 20 s, within its session: it gets what it had, and the others notice nothing.",
        _static("abc"),
        (*_starts("abc"), _event(60, EventKind.BOUNCE, "b", 20)),
    ),
    _scenario(
        "S65-twin",
        "two processes with one group.instance.id",
        "Classic: the newer process takes the place of the older, which is fenced. Consumer: the newer is refused.",
        _static("abc"),
        (*_starts("abc"), _event(60, EventKind.TWIN, "b")),
    ),
    _scenario(
        "S66",
        "partitions move to a new member",
        "c comes at 60 s. Cooperative: a and b give up one partition each, and in a second rebalance c gets them.",
        _members("abc"),
        (*_starts("ab"), _event(60, EventKind.START, "c")),
    ),
    _scenario(
        "S67",
        "a partition is waited for",
        "a takes 10 s to let three partitions go; b has its epoch at once, and the partitions when a reports.",
        _slow_to_revoke("ab", 10),
        (*_starts("a"), _event(60, EventKind.START, "b")),
        protocols=_CONSUMER,
    ),
    _scenario(
        "S68",
        "given back before it was given up",
        "While a is still letting go what b shall have, b leaves and a shall keep it, then c comes. Nobody shares.",
        _slow_to_revoke("abc", 30),
        (
            *_starts("a"),
            _event(60, EventKind.START, "b"),
            _event(70, EventKind.CLOSE, "b"),
            _event(75, EventKind.START, "c"),
        ),
        protocols=_CONSUMER,
    ),
    _scenario(
        "S69",
        "the answer that brings a new epoch is lost",
        "a's answer is lost with the epoch that it was to have; it reports in its former epoch, and is not fenced.",
        _members("ab"),
        (*_starts("a"), _event(60, EventKind.START, "b"), _event(60, EventKind.LOSE_ANSWER, "a")),
        protocols=_CONSUMER,
    ),
    _scenario(
        "S70",
        "too slow to let go",
        "a takes 400 s to let go. After 300 s it is fenced and b has everything; its listener keeps what it had until "
        "it returns, 100 s later, and then a is back with epoch 0.",
        _slow_to_revoke("ab", 400),
        (*_starts("a"), _event(60, EventKind.START, "b")),
        minutes=12,
        protocols=_CONSUMER,
    ),
    _scenario(
        "S72",
        "a rebalance outlasts the retention of offsets",
        "Offsets are kept for 1 minute. While a keeps the group rebalancing for 15, nothing is forgotten.",
        _members("abc", max_poll_interval_ms=DurationMs(20 * MINUTE_MS)),
        (*_starts("ab"), _event(120, EventKind.STALL, "a", 960), _event(180, EventKind.START, "c")),
        minutes=25,
        offsets_retention_ms=DurationMs(MINUTE_MS),
        protocols=(GroupProtocol.EAGER,),
    ),
    _scenario(
        "failover",
        "the coordinator dies, and the next one reads its records",
        "For 8 s nobody coordinates. Then all go on in their generation: nothing moves, and no commit is lost.",
        _members("abc"),
        (*_starts("abc"), _event(60, EventKind.FAILOVER, for_s=8)),
        minutes=3,
    ),
    _scenario(
        "shared-group-id",
        "three programs of different topics under one group.id",
        "reads-c comes while reads-b works on a batch of 30 s and cannot follow. reads-a has given up its partitions, "
        "and asks at its next batch for one of them. Where nothing is given up that need not be, nothing happens.",
        (
            MemberSpec(name="reads-a", topics=("a",), remembers_partitions=True),
            MemberSpec(name="reads-b", topics=("b",), poll_ms=DurationMs(30 * SECOND_MS)),
            MemberSpec(name="reads-c", topics=("c",)),
        ),
        (
            _event(0, EventKind.START, "reads-a"),
            _event(1, EventKind.START, "reads-b"),
            _event(130, EventKind.START, "reads-c"),
        ),
        minutes=6,
        topics=(("a", 2), ("b", 2), ("c", 2)),
        client=_SLOW,
    ),
    _scenario(
        "join-and-crash",
        "one member joins, another dies",
        "Applications work 5 s on each batch. The same joining and dying under each protocol: what stops, how long.",
        _members("abc"),
        (*_starts("ab"), _event(60, EventKind.START, "c"), _event(100, EventKind.CRASH, "a")),
        minutes=3,
        client=_SLOW,
    ),
)
SCENARIOS: Final[Mapping[str, SingleGroupScenario]] = {scenario.name: scenario for scenario in _ALL}
"""Every named scenario."""
