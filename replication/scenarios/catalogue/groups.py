"""Scenarios of consumer groups whose coordinator fails: S63 to S73.

The group's first coordinator is on broker 0. A dead broker is fenced 9 s after its last heartbeat, and the next in-sync
replica leads. Times are in ms; members start at 3 s or later.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.members import InstanceId
from broker.units import DurationMs, TimeMs
from replication.groups.client.assigning import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.client.link import ClientOptions, ClientSpec
from replication.groups.plan import Event, EventKind, MemberPlan
from replication.scenarios.group_scenario import (
    GROUP_ID,
    ExpectedGroup,
    GroupScenario,
)
from replication.scenarios.result import ExpectedResponses
from replication.simulation.fault import Fault
from replication.simulation.options import FaultKind


def _member(
    name: str,
    protocol: GroupProtocol,
    *events: Event,
    start_ms: int = 3_000,
    topic: str = "t",
    options: ClientOptions | None = None,
    remembers_partitions: bool = False,
) -> MemberPlan:
    spec = ClientSpec(
        name=name,
        group_id=GROUP_ID,
        topics=(topic,),
        assignors=(DEFAULT_ASSIGNORS[protocol],),
        options=ClientOptions() if options is None else options,
        remembers_partitions=remembers_partitions,
    )
    return MemberPlan(spec, protocol, (Event(TimeMs(start_ms), EventKind.START), *events))


def _slow(member: MemberPlan, revoke_ms: int) -> MemberPlan:
    """Return the member with an application that takes `revoke_ms` to give up partitions."""
    return attrs.evolve(member, spec=attrs.evolve(member.spec, revoke_ms=DurationMs(revoke_ms)))


def _static(member: MemberPlan) -> MemberPlan:
    """Return the member with its name as group.instance.id."""
    return attrs.evolve(member, spec=attrs.evolve(member.spec, instance_id=InstanceId(member.spec.name)))


def _killed(at_ms: int, broker: int, for_ms: int) -> Fault:
    return Fault(TimeMs(at_ms), FaultKind.KILL, broker, DurationMs(for_ms))


S65: Final = GroupScenario(
    name="S65-failover",
    title="Static member restarts during a coordinator failover",
    how="Member b dies, then broker 0. Broker 1 has read that b is a static member with an assignment; b is back "
    "within its session, gets the same partitions, and there is no rebalance.",
    source="KIP-345; Kafka GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin, GroupMetadataValue",
    members=(
        _static(_member("a", GroupProtocol.EAGER)),
        _static(
            _member(
                "b",
                GroupProtocol.EAGER,
                Event(TimeMs(20_000), EventKind.CRASH),
                Event(TimeMs(40_000), EventKind.START),
                start_ms=3_100,
            )
        ),
    ),
    faults=(_killed(22_000, 0, 30_000),),
    expected_states=(
        ExpectedGroup(19_000, coordinator=0, state="STABLE", generation=1, owned={"a": ("t-0", "t-1"), "b": ("t-2",)}),
        ExpectedGroup(39_000, coordinator=1, state="STABLE", generation=1, owned={"a": ("t-0", "t-1")}),
        ExpectedGroup(90_000, coordinator=1, state="STABLE", generation=1, owned={"a": ("t-0", "t-1"), "b": ("t-2",)}),
    ),
)
S66: Final = GroupScenario(
    name="S66-failover",
    title="Coordinator dies between the two rebalances of a cooperative move",
    how="Member c joins and gets no partition yet; a takes 15 s to revoke its partition; broker 0 dies. Broker 1 has "
    "read the first of the two generations; a joins again without the partition, and in the second c gets it.",
    source="KIP-429; Kafka GroupMetadataManager.onLoaded",
    members=(
        _slow(_member("a", GroupProtocol.COOPERATIVE), 15_000),
        _member("b", GroupProtocol.COOPERATIVE, start_ms=3_100),
        _member("c", GroupProtocol.COOPERATIVE, start_ms=30_500),
    ),
    faults=(_killed(38_000, 0, 30_000),),
    expected_states=(
        ExpectedGroup(29_000, coordinator=0, state="STABLE", generation=1),
        ExpectedGroup(37_900, coordinator=0, generation=2, owned={"a": ("t-0", "t-2"), "b": ("t-1",), "c": ()}),
        ExpectedGroup(55_000, coordinator=1, state="PREPARING_REBALANCE", generation=2),
        ExpectedGroup(
            100_000,
            coordinator=1,
            state="STABLE",
            generation=3,
            owned={"a": ("t-0",), "b": ("t-1",), "c": ("t-2",)},
        ),
    ),
)
S67: Final = GroupScenario(
    name="S67-failover",
    title="Coordinator dies while a partition is being revoked",
    how="Member b joins; a is asked to revoke a partition and takes 20 s; broker 0 dies. Broker 1 knows that a still "
    "has to revoke it, and b waits; at no time do both own it.",
    source="KIP-848; Kafka CurrentAssignmentBuilder, ConsumerGroupCurrentMemberAssignmentValue",
    members=(
        _slow(_member("a", GroupProtocol.CONSUMER), 20_000),
        _member("b", GroupProtocol.CONSUMER, start_ms=20_000),
    ),
    faults=(_killed(27_000, 0, 30_000),),
    expected_states=(
        ExpectedGroup(19_000, coordinator=0, state="STABLE", owned={"a": ("t-0", "t-1", "t-2")}),
        ExpectedGroup(26_000, coordinator=0, state="RECONCILING"),
        ExpectedGroup(41_000, coordinator=1, state="RECONCILING"),
        ExpectedGroup(90_000, coordinator=1, state="STABLE"),
    ),
    expected_responses=(
        ExpectedResponses("ConsumerGroupHeartbeatResponse", ErrorCode.FENCED_MEMBER_EPOCH, 0, 0),
        ExpectedResponses("ConsumerGroupHeartbeatResponse", ErrorCode.UNKNOWN_MEMBER_ID, 0, 0),
    ),
)
S71: Final = GroupScenario(
    name="S71",
    title="Coordinator fails over in the middle of a rebalance",
    how="Member c joins, and the others must rejoin; broker 0 dies before all have. Broker 1 loads the group "
    "as it was when stable, answers COORDINATOR_LOAD_IN_PROGRESS meanwhile, and the rebalance starts again; no "
    "commit is lost.",
    source="Kafka CoordinatorRuntime, GroupMetadataManager.onLoaded",
    members=(
        _member("a", GroupProtocol.EAGER, start_ms=12_000),
        _member("b", GroupProtocol.EAGER, start_ms=12_100),
        _member("c", GroupProtocol.EAGER, start_ms=30_500),
    ),
    faults=(_killed(32_000, 0, 30_000),),
    expected_states=(
        ExpectedGroup(29_000, coordinator=0, state="STABLE", generation=1, owned={"a": ("t-0", "t-1"), "b": ("t-2",)}),
        ExpectedGroup(31_900, coordinator=0, state="PREPARING_REBALANCE", generation=1),
        ExpectedGroup(80_000, coordinator=1, state="STABLE", owned={"a": ("t-0",), "b": ("t-1",), "c": ("t-2",)}),
    ),
    expected_responses=(
        ExpectedResponses("JoinGroupResponse", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ExpectedResponses("OffsetCommitResponse", ErrorCode.ILLEGAL_GENERATION, 0, 0),
    ),
    load_ms_max=DurationMs(10_000),
)
SHARED_GROUP_ID: Final = GroupScenario(
    name="S73",
    title="Three programs with different topics share one group.id and the coordinator dies",
    how="Program reads-c joins while reads-b works on a batch of 30 s. Program reads-a gives up its partitions to "
    "join, asks for one of them at its next batch, and ends; then the coordinator dies. All members find the next "
    "one and go on.",
    source="SPARK-22968",
    members=(
        _member("reads-a", GroupProtocol.EAGER, topic="a", remembers_partitions=True),
        _member(
            "reads-b", GroupProtocol.EAGER, topic="b", start_ms=3_100, options=ClientOptions(poll_ms=DurationMs(30_000))
        ),
        _member("reads-c", GroupProtocol.EAGER, topic="c", start_ms=36_000),
    ),
    faults=(_killed(41_000, 1, 30_000),),
    topics=(("a", 2), ("b", 1), ("c", 1)),
    expected_states=(
        ExpectedGroup(29_000, coordinator=1, state="STABLE", owned={"reads-a": ("a-0", "a-1"), "reads-b": ("b-0",)}),
        ExpectedGroup(
            110_000,
            state="STABLE",
            owned={"reads-a": ("a-0", "a-1"), "reads-b": ("b-0",), "reads-c": ("c-0",)},
        ),
    ),
    deaths=1,
)

STATIC_OWNER_BEGINS_ANEW: Final = GroupScenario(
    name="S74",
    title="Static member restarts between the two rebalances of a cooperative group and a partition stays unassigned",
    how="b joins, and static a is to give up t-2, for which it takes 5 s; it dies and is back in its session. It owns "
    "nothing, so it gives nothing up and does not join again: its stored assignment is all that it gets, and b waits "
    "for t-2 until c brings the next rebalance.",
    source="KIP-345 with KIP-429: GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin and "
    "ConsumerCoordinator.onJoinComplete, 4.3.1; no ticket known",
    members=(
        _static(
            _slow(
                _member(
                    "a",
                    GroupProtocol.COOPERATIVE,
                    Event(TimeMs(24_000), EventKind.CRASH),
                    Event(TimeMs(25_000), EventKind.START),
                ),
                5_000,
            )
        ),
        _member("b", GroupProtocol.COOPERATIVE, start_ms=20_000),
        _member("c", GroupProtocol.COOPERATIVE, start_ms=70_000),
    ),
    expected_states=(
        ExpectedGroup(19_000, state="STABLE", generation=1, owned={"a": ("t-0", "t-1", "t-2")}),
        ExpectedGroup(69_000, state="STABLE", generation=2, owned={"a": ("t-0", "t-1"), "b": ()}),
        ExpectedGroup(110_000, state="STABLE", owned={"a": ("t-0",), "b": ("t-1",), "c": ("t-2",)}),
    ),
)

GROUP_COORDINATORS: Final = (S65, S66, S67, S71, SHARED_GROUP_ID, STATIC_OWNER_BEGINS_ANEW)
