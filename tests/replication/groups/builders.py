"""Short ways to groups in small clusters."""

from __future__ import annotations

import attrs

from broker.ids import Offset, TopicPartition, partition_id
from broker.units import DurationMs, TimeMs
from replication.groups import Act, ActKind, GroupLife, GroupsPlan, Layout, MemberPlan
from replication.groups.alone.modes import DEFAULTS
from replication.groups.alone.scenario import Mode
from replication.groups.client.options import ClientOptions, ClientSpec
from replication.simulation import Fault, Outcome, quiet, run
from replication.simulation.options import Options

LAYOUT = Layout((("t", 3),), 1)
OPTIONS = attrs.evolve(quiet(1, DurationMs(60_000)), partitions=3, internal_partitions=1)
FIRST_ACT_MS = 3_000


def t(number: int) -> TopicPartition:
    return TopicPartition("t", partition_id(number))


def offset(number: int) -> Offset:
    return Offset(number)


def act(at_ms: int, kind: ActKind, for_ms: int = 0) -> Act:
    return Act(TimeMs(at_ms), kind, DurationMs(for_ms))


def member(name: str, mode: Mode, *acts: Act, start_ms: int = FIRST_ACT_MS, **client: int) -> MemberPlan:
    """Return a member of the group "group" that reads topic t; `client` are options of its consumer."""
    options = ClientOptions(**{key: DurationMs(value) for key, value in client.items()})
    spec = ClientSpec(name=name, group_id="group", topics=("t",), assignors=(DEFAULTS[mode],), options=options)
    return MemberPlan(spec, mode, (act(start_ms, ActKind.START), *acts))


def life_of(*members: MemberPlan, options: Options = OPTIONS) -> GroupLife:
    return GroupLife(options, GroupsPlan(layout=LAYOUT, members=members))


def lived(life: GroupLife, *faults: Fault, options: Options = OPTIONS) -> Outcome:
    return run(options, faults, extension=life)


def codes(outcome: Outcome) -> set[str]:
    return {finding.code for finding in outcome.findings}
