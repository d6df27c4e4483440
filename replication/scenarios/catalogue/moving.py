"""Scenarios of elections on request and of partitions that move.

It decides nothing; it is data. S39 on request, S50 to S54.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from broker.units import DurationMs
from replication.roles.messages import AlterPartitionReassignments, ElectLeaders
from replication.rules.election import Election
from replication.rules.switches import CURRENT, without
from replication.scenarios.acts import Crashed, Held, Ordered, Written
from replication.scenarios.catalogue.parts import PATIENT, UNCLEAN
from replication.scenarios.scenario import DEFAULT_TERMS, Answers, Look, Scenario


def _moved(at_ms: int, *replicas: int) -> Ordered:
    return Ordered(at_ms, AlterPartitionReassignments(0, tuple(BrokerId(replica) for replica in replicas)))


def _cancelled(at_ms: int) -> Ordered:
    return _moved(at_ms)


_S51: Final = Scenario(
    name="S51",
    title="from five replicas to three, of which none is in sync",
    how="Only 3 and 4, which are to go, are in sync. They stay until 0, 1 and 2 are all back in the ISR.",
    source="KIP-455, KAFKA-15665",
    brokers=5,
    replication_factor=5,
    acts=(
        Crashed(5_000, 0, 30_000),
        Crashed(5_000, 1, 35_000),
        Crashed(5_000, 2, 50_000),
        _moved(20_000, 0, 1, 2),
    ),
    looks=(
        Look(28_000, leader=3, isr=(3, 4), replicas=(0, 1, 2, 3, 4)),
        Look(45_000, leader=3, isr=(3, 4, 0, 1), replicas=(0, 1, 2, 3, 4)),
        Look(59_000, leader=0, isr=(0, 1, 2), replicas=(0, 1, 2)),
    ),
)

_S53: Final = Scenario(
    name="S53",
    title="no way back from a move",
    how="A move from 0, 1, 2 to 3, 4, 5 waits for 5, and only 3 and 4 are in sync when the operator wants to undo "
    "it: nobody of the former replicas has everything, so it is refused.",
    source="Kafka ReplicationControlManager.cancelPartitionReassignment",
    brokers=6,
    acts=(
        Crashed(4_000, 5, 59_000),
        _cancelled(4_500),
        _moved(5_000, 3, 4, 5),
        Crashed(15_000, 0, 50_000),
        Crashed(15_000, 1, 50_000),
        Crashed(15_000, 2, 50_000),
        _cancelled(30_000),
    ),
    looks=(
        Look(14_000, leader=0, isr=(0, 1, 2, 3, 4), replicas=(3, 4, 5, 0, 1, 2)),
        Look(29_000, leader=3, isr=(3, 4)),
        Look(40_000, leader=3, isr=(3, 4), replicas=(3, 4, 5, 0, 1, 2)),
    ),
    answers=(
        Answers("AlterPartitionReassignmentsResponse", ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, 1, 1),
        Answers("AlterPartitionReassignmentsResponse", ErrorCode.INVALID_REPLICA_ASSIGNMENT, 1, 1),
    ),
)

MOVING: Final = (
    Scenario(
        name="S39-asked",
        title="an election on request",
        how="The preferred leader is asked for while it leads, while it is dead, and when it is back in sync.",
        source="KIP-460",
        acts=(
            Ordered(4_000, ElectLeaders(0, Election.PREFERRED)),
            Crashed(5_000, 0, 20_000),
            Ordered(18_000, ElectLeaders(0, Election.PREFERRED)),
            Ordered(40_000, ElectLeaders(0, Election.PREFERRED)),
        ),
        looks=(
            Look(19_000, leader=1, leader_epoch=1),
            Look(39_900, leader=1, isr=(1, 2, 0)),
            Look(41_000, leader=0, isr=(1, 2, 0), leader_epoch=2),
        ),
        answers=(
            Answers("ElectLeadersResponse", ErrorCode.ELECTION_NOT_NEEDED, 1, 1),
            Answers("ElectLeadersResponse", ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 1, 1),
            Answers("ElectLeadersResponse", ErrorCode.NONE, 1, 1),
        ),
    ),
    Scenario(
        name="S50",
        title="a replica moves",
        how="Partition 0 moves from 0, 1, 2 to 0, 1, 3: 3 copies and joins, and 2 is let go with a new leader epoch.",
        source="KIP-455",
        brokers=4,
        acts=(_moved(5_000, 0, 1, 3),),
        looks=(
            Look(4_900, replicas=(0, 1, 2), leader=0, leader_epoch=0),
            Look(30_000, replicas=(0, 1, 3), isr=(0, 1, 3), leader=0, leader_epoch=1),
        ),
    ),
    _S51,
    attrs.evolve(
        _S51,
        name="S51-before",
        how="As S51, but one of the three is enough: the partition is left with a single replica in sync.",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "elr", "reassignment_needs_all_targets")),
        looks=(_S51.looks[0], Look(33_000, leader=0, isr=(0,), replicas=(0, 1, 2))),
    ),
    Scenario(
        name="S52",
        title="a leader that is moved away",
        how="Partition 0 moves from 0, 1, 2 to 3, 1, 2. As 3 joins, the answer to the leader's own request says "
        "that it leads no more.",
        source="Kafka ReplicationControlManager.alterPartition",
        brokers=4,
        acts=(_moved(5_000, 3, 1, 2),),
        looks=(Look(30_000, replicas=(3, 1, 2), leader=3, leader_epoch=1),),
        answers=(Answers("AlterPartitionResponse", ErrorCode.NEW_LEADER_ELECTED, 1, 1),),
    ),
    _S53,
    attrs.evolve(
        _S53,
        name="S53-unclean",
        title="a way back from a move that loses records",
        how="As S53, where unclean election is allowed: the first of the former replicas is taken for in sync.",
        settings=UNCLEAN,
        producers=0,
        consumers=0,
        acts=(*_S53.acts, Written(25_000, 3)),
        looks=(Look(40_000, leader=-1, isr=(0,), replicas=(0, 1, 2)), Look(58_000, leader=1)),
        answers=(Answers("AlterPartitionReassignmentsResponse", ErrorCode.NONE, 2, 2),),
        breaks=frozenset({"I6", "I26"}),
        gone=(0,),
        is_strict=False,
    ),
    Scenario(
        name="S54",
        title="a replica removed and added again, in one piece of news",
        how="2 is removed, drops its log, and is added again, empty. The leader hears of both at once, and must not "
        "go by what 2 held before. Until then it counts 2 in its ISR.",
        source="Vanlightly/kafka-tlaplus, section 6.5.4",
        role_settings=PATIENT,
        producers=0,
        consumers=0,
        acts=(
            Written(5_000, 0),
            Held(5_990, 6_500, "MetadataFetchResponse", receiver=0),
            _moved(6_000, 0, 1),
            Held(6_150, 20_000, "FetchResponse", receiver=2),
            _moved(6_200, 0, 1, 2),
        ),
        looks=(
            Look(6_100, replicas=(0, 1), isr=(0, 1), leader_epoch=1),
            Look(15_000, replicas=(0, 1, 2), isr=(0, 1), logs=((0,), (0,), ())),
            Look(30_000, replicas=(0, 1, 2), isr=(0, 1, 2), logs=((0,), (0,), (0,))),
        ),
        gone=(),
        duration_ms=DurationMs(40_000),
    ),
)
"""S39 on request, S50 to S54."""
