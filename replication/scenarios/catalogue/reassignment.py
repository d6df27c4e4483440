"""Scenarios of requested elections and reassignments: S39-asked, S50, S51, S54, S99."""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from broker.units import DurationMs
from replication.roles.messages import AlterPartitionReassignments, ElectLeaders
from replication.rules.election import Election
from replication.rules.switches import CURRENT, without
from replication.scenarios.catalogue.common import PATIENT
from replication.scenarios.operations import AskController, Crash, HoldMessages, SendRecord
from replication.scenarios.scenario import DEFAULT_PARTITION_SETTINGS, ExpectedResponses, ExpectedState, Scenario


def _moved(at_ms: int, *replicas: int) -> AskController:
    return AskController(at_ms, AlterPartitionReassignments(0, tuple(BrokerId(replica) for replica in replicas)))


_S51: Final = Scenario(
    name="S51",
    title="Reassignment from five replicas to three that are out of sync",
    how="Only 3 and 4, which are to be removed, are in sync. They stay until 0, 1 and 2 are all back in the ISR.",
    source="KIP-455, KAFKA-15665",
    brokers=5,
    replication_factor=5,
    operations=(
        Crash(5_000, 0, 30_000),
        Crash(5_000, 1, 35_000),
        Crash(5_000, 2, 50_000),
        _moved(20_000, 0, 1, 2),
    ),
    expected_states=(
        ExpectedState(28_000, leader=3, isr=(3, 4), replicas=(0, 1, 2, 3, 4)),
        ExpectedState(45_000, leader=3, isr=(3, 4, 0, 1), replicas=(0, 1, 2, 3, 4)),
        ExpectedState(59_000, leader=0, isr=(0, 1, 2), replicas=(0, 1, 2)),
    ),
)


_S99: Final = Scenario(
    name="S99",
    title="Former replica comes back empty and is elected from the ELR",
    how="1 is dead as 0 moves to 3, so the move leaves one broker in sync and the former replica 0 in the ELR. 0 is "
    "added again, with an empty log, and still counts as eligible: when 3 dies it leads, and the record is lost.",
    source="Kafka PartitionChangeBuilder.maybePopulateTargetElr, 4.3.1; open to every move since KAFKA-19975",
    brokers=4,
    replication_factor=2,
    producers=0,
    consumers=0,
    operations=(
        SendRecord(5_000, 0),
        Crash(6_000, 1, 60_000),
        _moved(20_000, 3, 1),
        HoldMessages(24_000, 60_000, "FetchResponse", receiver=0),
        _moved(25_000, 0, 1),
        Crash(26_000, 3, 70_000),
    ),
    expected_states=(
        ExpectedState(24_000, leader=3, isr=(3,), elr=(0, 1), replicas=(3, 1), logs=((), (0,), (), (0,))),
        ExpectedState(25_900, leader=3, isr=(3,), elr=(0, 1), replicas=(0, 1, 3)),
        ExpectedState(40_000, leader=0, isr=(0,), logs=((), (0,), (), (0,))),
    ),
    breaks=frozenset({"I6", "I7", "I9"}),
    lost_values=(0,),
)

_S99_STUCK: Final = attrs.evolve(
    _S99,
    name="S99-stuck",
    title="Former replica in the ELR keeps a partition without a leader",
    how="As S99, but 0 is not added again. 1 and 3 restart after unclean stops and leave the ELR; 0 stays in it and is "
    "no replica. As the ELR is not empty, the last known leader is not elected: it takes an operator's UNCLEAN order.",
    operations=(*_S99.operations[:3], Crash(26_000, 3, 45_000), Crash(6_001, 1, 40_000)),
    expected_states=(_S99.expected_states[0], ExpectedState(59_000, leader=-1, isr=(), elr=(0,), replicas=(3, 1))),
    breaks=frozenset({"L", "I10"}),
    lost_values=(0,),
)

REASSIGNMENT: Final = (
    Scenario(
        name="S39-asked",
        title="ElectLeaders on request",
        how="An operator requests the preferred leader while it leads, while it is dead, and when it is back in sync.",
        source="KIP-460",
        operations=(
            AskController(4_000, ElectLeaders(0, Election.PREFERRED)),
            Crash(5_000, 0, 20_000),
            AskController(18_000, ElectLeaders(0, Election.PREFERRED)),
            AskController(40_000, ElectLeaders(0, Election.PREFERRED)),
        ),
        expected_states=(
            ExpectedState(19_000, leader=1, leader_epoch=1),
            ExpectedState(39_900, leader=1, isr=(1, 2, 0)),
            ExpectedState(41_000, leader=0, isr=(1, 2, 0), leader_epoch=2),
        ),
        expected_responses=(
            ExpectedResponses("ElectLeadersResponse", ErrorCode.ELECTION_NOT_NEEDED, 1, 1),
            ExpectedResponses("ElectLeadersResponse", ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 1, 1),
            ExpectedResponses("ElectLeadersResponse", ErrorCode.NONE, 1, 1),
        ),
    ),
    Scenario(
        name="S50",
        title="Reassignment of one replica",
        how="Partition 0 moves from 0, 1, 2 to 0, 1, 3: 3 copies and joins the ISR, and 2 is removed with a new "
        "leader epoch.",
        source="KIP-455",
        brokers=4,
        operations=(_moved(5_000, 0, 1, 3),),
        expected_states=(
            ExpectedState(4_900, replicas=(0, 1, 2), leader=0, leader_epoch=0),
            ExpectedState(30_000, replicas=(0, 1, 3), isr=(0, 1, 3), leader=0, leader_epoch=1),
        ),
    ),
    _S51,
    attrs.evolve(
        _S51,
        name="S51-before",
        title="Reassignment completes with one target replica in sync",
        how="As S51, but one of the three is enough: the partition is left with a single replica in sync.",
        settings=attrs.evolve(
            DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "elr", "reassignment_needs_all_targets")
        ),
        expected_states=(_S51.expected_states[0], ExpectedState(33_000, leader=0, isr=(0,), replicas=(0, 1, 2))),
    ),
    Scenario(
        name="S54",
        title="Replica is removed and added again in one metadata update",
        how="Broker 2 is removed, deletes its log, and is added again with an empty one. The leader learns of both at "
        "once and must forget the old fetch offset of 2. Until then it counts 2 in its ISR.",
        source="Vanlightly/kafka-tlaplus, section 6.5.4",
        role_settings=PATIENT,
        producers=0,
        consumers=0,
        operations=(
            SendRecord(5_000, 0),
            HoldMessages(5_990, 6_500, "MetadataFetchResponse", receiver=0),
            _moved(6_000, 0, 1),
            HoldMessages(6_150, 20_000, "FetchResponse", receiver=2),
            _moved(6_200, 0, 1, 2),
        ),
        expected_states=(
            ExpectedState(6_100, replicas=(0, 1), isr=(0, 1), leader_epoch=1),
            ExpectedState(15_000, replicas=(0, 1, 2), isr=(0, 1), logs=((0,), (0,), ())),
            ExpectedState(30_000, replicas=(0, 1, 2), isr=(0, 1, 2), logs=((0,), (0,), (0,))),
        ),
        lost_values=(),
        duration_ms=DurationMs(40_000),
    ),
    _S99,
    _S99_STUCK,
    attrs.evolve(
        _S99,
        name="S99-mended",
        title="Former replicas leave the ELR",
        how="As S99, but the ELR holds replicas only, as in no release: 0 is not eligible, and nobody leads until 3 is "
        "back.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=attrs.evolve(CURRENT, elr_holds_replicas_only=True)),
        expected_states=(
            ExpectedState(24_000, leader=3, isr=(3,), elr=(1,), replicas=(3, 1)),
            ExpectedState(40_000, leader=-1, isr=(), elr=(1, 3)),
        ),
        breaks=frozenset(),
        lost_values=(),
    ),
)
