"""The scenarios of groups whose coordinator fails, by number: data.

It decides nothing. The group's coordinator is on broker 0 at first; a broker that dies is fenced 9 s after its last
word, and the next in-sync replica leads. Times are in ms; members come at 3 s and after.

Left out: the scenarios of a group whose coordinator's broker is well (replication.groups.alone).

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.members import InstanceId
from broker.units import MINUTE_MS, DurationMs, TimeMs
from replication.groups.client.options import ClientOptions, ClientSpec
from replication.groups.client.protocols import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.common.events import Event, EventKind
from replication.groups.plan import MemberPlan
from replication.roles.settings import RoleSettings
from replication.scenarios.group_scenario import GROUP_ID, GroupLook, GroupScenario, Heard, Unheard
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind

_SETTINGS: Final = RoleSettings(produce_ms_max=DurationMs(5_000))
_GIVING_BACK: Final = attrs.evolve(_SETTINGS, balance_ms=DurationMs(90_000))
"""Leadership goes back to the preferred replica soon."""


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
    """Return the member with an application that takes its time to let partitions go."""
    return attrs.evolve(member, spec=attrs.evolve(member.spec, revoke_ms=DurationMs(revoke_ms)))


def _static(member: MemberPlan) -> MemberPlan:
    """Return the member with a group.instance.id, its name."""
    return attrs.evolve(member, spec=attrs.evolve(member.spec, instance_id=InstanceId(member.spec.name)))


def _killed(at_ms: int, broker: int, for_ms: int) -> Fault:
    return Fault(TimeMs(at_ms), FaultKind.KILL, broker, DurationMs(for_ms))


S61: Final = GroupScenario(
    name="S61-failover",
    title="a member stops its heartbeats, and the coordinator that would miss them dies",
    how="c dies, and 5 s later broker 0. Broker 1 cannot know when c was heard of: c has a whole session of 45 s from "
    "its taking over, and only then do a and b join again and share what c had.",
    source="Kafka GroupMetadataManager.onLoaded (rescheduleClassicGroupMemberHeartbeat)",
    members=(
        _member("a", GroupProtocol.EAGER),
        _member("b", GroupProtocol.EAGER, start_ms=3_100),
        _member("c", GroupProtocol.EAGER, Event(TimeMs(20_000), EventKind.CRASH), start_ms=3_200),
    ),
    faults=(_killed(25_000, 0, 30_000),),
    looks=(
        GroupLook(
            19_000, coordinator=0, state="STABLE", generation=1, owned={"a": ("t-0",), "b": ("t-1",), "c": ("t-2",)}
        ),
        GroupLook(77_000, coordinator=1, state="STABLE", generation=1, owned={"a": ("t-0",), "b": ("t-1",)}),
        GroupLook(90_000, coordinator=1, state="STABLE", generation=2, owned={"a": ("t-0", "t-1"), "b": ("t-2",)}),
    ),
)
S63: Final = GroupScenario(
    name="S63-failover",
    title="a zombie commits to a coordinator that has come back",
    how="Broker 0 dies, a stands still; broker 1 coordinates, drops a and gives all to b; then broker 0 leads again. "
    "a goes on with its old generation, and broker 0 knows from the log that a is no member.",
    source="Kafka ClassicGroup.validateOffsetCommit, GroupMetadataManager.replay",
    members=(
        _member("a", GroupProtocol.EAGER, Event(TimeMs(20_000), EventKind.FREEZE, DurationMs(100_000))),
        _member("b", GroupProtocol.EAGER, start_ms=3_100),
    ),
    faults=(_killed(22_000, 0, 15_000),),
    looks=(
        GroupLook(19_000, coordinator=0, state="STABLE", generation=1),
        GroupLook(
            100_000,
            coordinator=0,
            state="STABLE",
            generation=2,
            owned={"a": ("t-0", "t-1"), "b": ("t-0", "t-1", "t-2")},
        ),
    ),
    heard=(
        Heard("OffsetCommitResponse", ErrorCode.UNKNOWN_MEMBER_ID, 1, member="a"),
        Heard("OffsetCommitResponse", ErrorCode.UNKNOWN_MEMBER_ID, 0, 0, member="b"),
        Heard("HeartbeatResponse", ErrorCode.NOT_COORDINATOR, member="b"),
    ),
    role_settings=_GIVING_BACK,
    duration_ms=DurationMs(3 * MINUTE_MS),
)
S64: Final = GroupScenario(
    name="S64-failover",
    title="the coordinator dies between join and sync",
    how="The answers of broker 0 to the leader of the group are lost, so that nobody is assigned; then broker 0 dies. "
    "Broker 1 knows of no generation, and everybody joins anew.",
    source="Kafka GroupMetadataManager: a generation is stored with its assignment only",
    members=(_member("a", GroupProtocol.EAGER), _member("b", GroupProtocol.EAGER, start_ms=3_100)),
    unheard=(Unheard(8_000, 20_000, 0, "a"),),
    faults=(_killed(10_000, 0, 15_000),),
    looks=(
        GroupLook(9_900, coordinator=0, state="COMPLETING_REBALANCE", generation=1, owned={"a": (), "b": ()}),
        GroupLook(60_000, coordinator=1, state="STABLE"),
    ),
    heard=(Heard("JoinGroupResponse", ErrorCode.UNKNOWN_MEMBER_ID, 1),),
    duration_ms=DurationMs(90_000),
)
S65: Final = GroupScenario(
    name="S65-failover",
    title="a static member is started anew while the coordinator fails",
    how="b dies, then broker 0. Broker 1 has read that b is a static member with a share; b is back within its "
    "session, gets what it had, and there is no rebalance.",
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
    looks=(
        GroupLook(19_000, coordinator=0, state="STABLE", generation=1, owned={"a": ("t-0", "t-1"), "b": ("t-2",)}),
        GroupLook(39_000, coordinator=1, state="STABLE", generation=1, owned={"a": ("t-0", "t-1")}),
        GroupLook(90_000, coordinator=1, state="STABLE", generation=1, owned={"a": ("t-0", "t-1"), "b": ("t-2",)}),
    ),
)
S66: Final = GroupScenario(
    name="S66-failover",
    title="the coordinator dies between the two rebalances of a cooperative move",
    how="c comes and is given nothing yet; a takes 15 s to let its partition go; broker 0 dies. Broker 1 has read the "
    "first of the two generations; a joins again without the partition, and in the second c gets it.",
    source="KIP-429; Kafka GroupMetadataManager.onLoaded",
    members=(
        _slow(_member("a", GroupProtocol.COOPERATIVE), 15_000),
        _member("b", GroupProtocol.COOPERATIVE, start_ms=3_100),
        _member("c", GroupProtocol.COOPERATIVE, start_ms=30_500),
    ),
    faults=(_killed(38_000, 0, 30_000),),
    looks=(
        GroupLook(29_000, coordinator=0, state="STABLE", generation=1),
        GroupLook(37_900, coordinator=0, generation=2, owned={"a": ("t-0", "t-2"), "b": ("t-1",), "c": ()}),
        GroupLook(55_000, coordinator=1, state="PREPARING_REBALANCE", generation=2),
        GroupLook(
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
    title="the coordinator dies while a partition is on its way",
    how="b joins; a is asked for a partition and takes 20 s to let it go; broker 0 dies. Broker 1 knows that a is "
    "still to give it back, and b waits; at no time do both own it.",
    source="KIP-848; Kafka CurrentAssignmentBuilder, ConsumerGroupCurrentMemberAssignmentValue",
    members=(
        _slow(_member("a", GroupProtocol.CONSUMER), 20_000),
        _member("b", GroupProtocol.CONSUMER, start_ms=20_000),
    ),
    faults=(_killed(27_000, 0, 30_000),),
    looks=(
        GroupLook(19_000, coordinator=0, state="STABLE", owned={"a": ("t-0", "t-1", "t-2")}),
        GroupLook(26_000, coordinator=0, state="RECONCILING"),
        GroupLook(41_000, coordinator=1, state="RECONCILING"),
        GroupLook(90_000, coordinator=1, state="STABLE"),
    ),
    heard=(
        Heard("ConsumerGroupHeartbeatResponse", ErrorCode.FENCED_MEMBER_EPOCH, 0, 0),
        Heard("ConsumerGroupHeartbeatResponse", ErrorCode.UNKNOWN_MEMBER_ID, 0, 0),
    ),
)
S69: Final = GroupScenario(
    name="S69-failover",
    title="a lost heartbeat response, and the coordinator lost too",
    how="b leaves, and a's next heartbeat moves a to the next epoch; the answer is lost, then broker 0 dies. Broker 1 "
    "has read that a is in the new epoch; a comes with the one before and what it owns, and is taken.",
    source="Kafka GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid",
    members=(
        _member("a", GroupProtocol.CONSUMER),
        _member("b", GroupProtocol.CONSUMER, Event(TimeMs(30_000), EventKind.CLOSE, DurationMs(0)), start_ms=3_100),
    ),
    unheard=(Unheard(29_900, 60_000, 0, "a"),),
    faults=(_killed(38_000, 0, 30_000),),
    looks=(
        GroupLook(28_000, coordinator=0, state="STABLE"),
        GroupLook(37_000, coordinator=0, state="STABLE"),
        GroupLook(80_000, coordinator=1, state="STABLE", owned={"a": ("t-0", "t-1", "t-2")}),
    ),
    heard=(Heard("ConsumerGroupHeartbeatResponse", ErrorCode.FENCED_MEMBER_EPOCH, 0, 0),),
)
S71: Final = GroupScenario(
    name="S71",
    title="fail-over of the coordinator in the middle of a rebalance",
    how="c joins, and the others are told to; broker 0 dies before all have. Broker 1 reads the group as it was "
    "stable, says that it is loading meanwhile, and the rebalance begins anew; no commit is lost.",
    source="Kafka CoordinatorRuntime, GroupMetadataManager.onLoaded",
    members=(
        _member("a", GroupProtocol.EAGER, start_ms=12_000),
        _member("b", GroupProtocol.EAGER, start_ms=12_100),
        _member("c", GroupProtocol.EAGER, start_ms=30_500),
    ),
    faults=(_killed(32_000, 0, 30_000),),
    looks=(
        GroupLook(29_000, coordinator=0, state="STABLE", generation=1, owned={"a": ("t-0", "t-1"), "b": ("t-2",)}),
        GroupLook(31_900, coordinator=0, state="PREPARING_REBALANCE", generation=1),
        GroupLook(80_000, coordinator=1, state="STABLE", owned={"a": ("t-0",), "b": ("t-1",), "c": ("t-2",)}),
    ),
    heard=(
        Heard("JoinGroupResponse", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        Heard("OffsetCommitResponse", ErrorCode.ILLEGAL_GENERATION, 0, 0),
    ),
    load_ms_max=DurationMs(10_000),
)
S71_COOPERATIVE: Final = attrs.evolve(
    S71,
    name="S71-coop",
    title="the same, cooperative: who keeps its partitions reads on while there is no coordinator",
    members=tuple(
        _member(member.spec.name, GroupProtocol.COOPERATIVE, start_ms=member.events[0].at_ms) for member in S71.members
    ),
    looks=(
        GroupLook(29_000, coordinator=0, state="STABLE", generation=1),
        GroupLook(80_000, coordinator=1, state="STABLE"),
    ),
)
INCIDENT: Final = GroupScenario(
    name="S73",
    title="three programs of different topics under one group.id, and a coordinator that dies",
    how="reads-c comes while reads-b works on a batch of 30 s. reads-a gives up its partitions to join, asks for one "
    "of them at its next batch, and ends; then the coordinator dies. Everybody finds the next one, and goes on.",
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
    looks=(
        GroupLook(29_000, coordinator=1, state="STABLE", owned={"reads-a": ("a-0", "a-1"), "reads-b": ("b-0",)}),
        GroupLook(
            110_000,
            state="STABLE",
            owned={"reads-a": ("a-0", "a-1"), "reads-b": ("b-0",), "reads-c": ("c-0",)},
        ),
    ),
    deaths=1,
)

OF_GROUPS: Final = (S61, S63, S64, S65, S66, S67, S69, S71, S71_COOPERATIVE, INCIDENT)
