"""Short ways to groups in small clusters."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.ids import Offset, TopicPartition, partition_id
from broker.units import DurationMs, TimeMs
from replication.groups import GroupsExtension, GroupsPlan, Layout, MemberPlan
from replication.groups.client.assigning import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.client.link import ClientOptions, ClientSpec
from replication.groups.plan import Event, EventKind
from replication.rules.fetch import FetchOutcome, FollowerFetchHandler
from replication.simulation import Fault, Outcome, quiet, run
from replication.simulation.options import Options

LAYOUT = Layout((("t", 3),), 1)
OPTIONS = attrs.evolve(quiet(1, DurationMs(60_000)), partitions=3, internal_partitions=1)
FIRST_ACT_MS = 3_000


def t(number: int) -> TopicPartition:
    return TopicPartition("t", partition_id(number))


def offset(number: int) -> Offset:
    return Offset(number)


def act(at_ms: int, kind: EventKind, for_ms: int = 0) -> Event:
    return Event(TimeMs(at_ms), kind, DurationMs(for_ms))


def member(
    name: str, protocol: GroupProtocol, *events: Event, start_ms: int = FIRST_ACT_MS, **client: int
) -> MemberPlan:
    """Return a member of the group "group" that reads topic t; `client` are options of its consumer."""
    options = ClientOptions(**{key: DurationMs(value) for key, value in client.items()})
    spec = ClientSpec(
        name=name, group_id="group", topics=("t",), assignors=(DEFAULT_ASSIGNORS[protocol],), options=options
    )
    return MemberPlan(spec, protocol, (act(start_ms, EventKind.START), *events))


def groups_of(*members: MemberPlan, options: Options = OPTIONS) -> GroupsExtension:
    return GroupsExtension(options, GroupsPlan(layout=LAYOUT, members=members))


def ran(groups: GroupsExtension, *faults: Fault, options: Options = OPTIONS) -> Outcome:
    return run(options, faults, extension=groups)


def codes(outcome: Outcome) -> set[str]:
    return {finding.code for finding in outcome.findings}


def count_held_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count a held fetch again as it is answered, which Kafka does not, for histories that were found under this."""
    real = FollowerFetchHandler.handle

    def handle(self: FollowerFetchHandler, *parts: Any, was_held: bool) -> FetchOutcome:
        return real(self, *parts)

    monkeypatch.setattr(FollowerFetchHandler, "handle", handle)
