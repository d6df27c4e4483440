"""Run groups without a cluster: the campaign's runs of one group, drawn or of a named scenario.

What it decides: members, protocol, assignor and release of each run, from the seed; and what each must come to,
whatever happened in it: no invariant is broken, the group settles, every partition has one owner at the end, and
each trouble has a cause.

Source: ours.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.releases import NEWEST, Release
from broker.units import DurationMs
from replication.groups.alone import SCENARIOS, GroupRun, Shape, SingleGroupScenario, run_group, seeded_scenario
from replication.groups.client.protocols import GroupProtocol
from replication.groups.common.events import EventKind

_STREAM: Final = 17
_REST_MS: Final = 180_000
"""Longer than any session: a static member that is restarted too early is refused until its former session is over.

Of new partitions a classic member learns when its metadata is old, which comes on top.
"""
_START_MS: Final = 30_000
"""Longer than a group needs to begin to read, and how far it may be behind at the end."""
_UNOWNED_MS: Final = 90_000
"""Longer than a session and a rebalance."""
_BREAKS: Final = (EventKind.CRASH, EventKind.CLOSE, EventKind.BOUNCE, EventKind.STALL, EventKind.FREEZE)
_SLOWING: Final = (EventKind.STALL, EventKind.FREEZE)
"""What members do that others wait for as long as max.poll.interval.ms allows."""
_PROTOCOLS: Final = tuple(GroupProtocol)
_ASSIGNORS: Final = {
    GroupProtocol.EAGER: ("range", "roundrobin", "sticky"),
    GroupProtocol.COOPERATIVE: (None,),
    GroupProtocol.CONSUMER: ("server-range", "uniform"),
}
_RELEASES: Final = (NEWEST, NEWEST, Release("4.1"), Release("4.0"))
_EXPIRING_ONE_IN: Final = 4


def lone_group_noticed(seed: int) -> str:
    """Return what one group alone shows to be broken, "" if nothing."""
    entropy = SplitMix64(derive(seed, _STREAM))
    protocol = _PROTOCOLS[seed % len(_PROTOCOLS)]
    release = _RELEASES[entropy.next_int_bound(len(_RELEASES))]
    names = _ASSIGNORS[protocol]
    shape = Shape(
        members=2 + entropy.next_int_bound(4),
        partitions=1 + entropy.next_int_bound(9),
        minutes=5 + entropy.next_int_bound(3),
    )
    drawn = seeded_scenario(seed, shape)
    scenario = attrs.evolve(
        drawn,
        members=tuple(
            attrs.evolve(
                member,
                max_poll_interval_ms=(None, DurationMs(20_000), DurationMs(60_000))[entropy.next_int_bound(3)],
                revoke_ms=DurationMs((0, 0, 2_000, 15_000)[entropy.next_int_bound(4)]),
            )
            for member in drawn.members
        ),
        assignor=names[entropy.next_int_bound(len(names))],
        records_per_second=5,
        assignment_interval_ms=(None, DurationMs(0), DurationMs(5_000))[entropy.next_int_bound(3)],
    )
    if entropy.next_int_bound(_EXPIRING_ONE_IN) == 0:
        scenario = _expiring(scenario)
    return _broken(run_group(scenario, protocol, seed, release), is_seeded=True)


def named_group_noticed(seed: int) -> str:
    """Return what a named scenario shows to be broken under another seed than its own, "" if nothing."""
    scenario = SCENARIOS[sorted(SCENARIOS)[seed % len(SCENARIOS)]]
    protocol = scenario.protocols[(seed // len(SCENARIOS)) % len(scenario.protocols)]
    return _broken(run_group(scenario, protocol, seed), is_seeded=False)


def _expiring(scenario: SingleGroupScenario) -> SingleGroupScenario:
    """Let offsets expire within the run: nothing happens any more, and after ten minutes the coordinator looks."""
    return attrs.evolve(scenario, offsets_retention_ms=DurationMs(60_000), duration_ms=DurationMs(11 * 60_000))


def _broken(group_run: GroupRun, *, is_seeded: bool) -> str:
    if group_run.findings:
        return str(group_run.findings[0])
    if not is_seeded:
        return ""
    last_ms = max(event.at_ms + event.for_ms for event in group_run.scenario.events)
    grows = any(event.kind is EventKind.ADD_PARTITIONS for event in group_run.scenario.events)
    rest_ms = _REST_MS + (group_run.scenario.client.metadata_age_ms_max if grows else 0)
    if group_run.settled_ms is None or group_run.settled_ms > last_ms + rest_ms:
        return f"settled at {group_run.settled_ms} ms, and all was over at {last_ms} ms"
    at_end = [span.partition for span in group_run.spans if span.end_ms == group_run.scenario.duration_ms]
    known = {span.partition for span in group_run.spans}
    if len(at_end) != len(known) or set(at_end) != known:
        return f"at the end {len(at_end)} of {len(known)} partitions have an owner"
    return next((what for what, holds in _reasons(group_run).items() if not holds), "")


def _is_slow(group_run: GroupRun) -> bool:
    """Return whether some member takes its time to give partitions back."""
    return any(member.revoke_ms for member in group_run.scenario.members)


def _reasons(group_run: GroupRun) -> dict[str, bool]:
    """Return what must hold of a run's counts, given what happened in it: each trouble has a cause."""
    kinds = Counter(event.kind for event in group_run.scenario.events)
    starts, others = kinds.pop(EventKind.START), kinds.total()
    breaks = sum(kinds[kind] for kind in _BREAKS)
    departures = sum(group_run.departures.values())
    partitions = len({span.partition for span in group_run.spans})
    due = partitions * group_run.scenario.records_per_second * (group_run.scenario.duration_ms - _START_MS) // 1_000
    grows = EventKind.ADD_PARTITIONS in kinds
    return {
        f"members died: {group_run.deaths}": all("INSTANCE_ID" in death.text for death in group_run.deaths),
        # Who joins eagerly commits before, and is put out if that is held for longer than a rebalance waits.
        f"{departures} members left for {breaks} events": departures
        <= breaks + kinds[EventKind.FAILOVER] + kinds[EventKind.HOLD_COMMITS],
        f"commits ended as {group_run.commits}": others > 0 or set(group_run.commits) == {"NONE"},
        f"{group_run.duplicate_count} records were read again": others > 0
        or _is_slow(group_run)
        or group_run.duplicate_count == 0,
        f"of {due} records {group_run.read_count} were read": grows
        or group_run.read_count - group_run.duplicate_count >= due,
        f"{group_run.rebalance_count} rebalances": group_run.rebalance_count <= starts + 2 * others + departures + 1,
        f"nobody had a partition for {group_run.unowned_ms_max} ms": group_run.unowned_ms_max
        <= _START_MS + _UNOWNED_MS * others,
        f"a rebalance took {group_run.rebalance_latency_max} ms": any(kinds[kind] for kind in _SLOWING)
        or group_run.rebalance_latency_max <= (_UNOWNED_MS if others else _START_MS),
        f"{group_run.move_count} moves, of which {group_run.least_move_count} were needed": group_run.move_count
        >= group_run.least_move_count,
        f"two had a partition for {group_run.shared_ms} ms": others > 0 or group_run.shared_ms == 0,
    }
