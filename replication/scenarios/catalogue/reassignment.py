"""Scenarios of requested elections, reassignments and controllers; those of a quorum are searched."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from replication.explore import QuorumModel, QuorumScope, Violation
from replication.explore.search import described, search
from replication.roles.messages import ElectLeaders
from replication.rules.election import Election
from replication.rules.switches import CURRENT, rules_of, without
from replication.scenarios.catalogue.common import reassign, reassign_and_elect
from replication.scenarios.operations import AskController, Crash, HoldMessages, Operation, SendRecord
from replication.scenarios.result import ComponentScenario, ExpectedResponses, Fact
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedState,
    Scenario,
    no_response,
)
from replication.simulation.history import LineSink

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
        reassign(20_000, 3, 1),
        HoldMessages(24_000, 60_000, "FetchResponse", receiver=0),
        reassign(25_000, 0, 1),
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
        name="S51-before",
        title="Reassignment completes with one target replica in sync",
        how="A partition is to shrink from five replicas to three that are out of sync. One of the three in sync is "
        "enough to complete the move: the partition is left with a single replica in sync. By the fix the brokers "
        "to be removed stay until all three are back.",
        source="KIP-455, KAFKA-15665",
        brokers=5,
        replication_factor=5,
        operations=(
            Crash(5_000, 0, 30_000),
            Crash(5_000, 1, 35_000),
            Crash(5_000, 2, 50_000),
            reassign(20_000, 0, 1, 2),
        ),
        expected_states=(
            ExpectedState(28_000, leader=3, isr=(3, 4), replicas=(0, 1, 2, 3, 4)),
            ExpectedState(33_000, leader=0, isr=(0,), replicas=(0, 1, 2)),
        ),
        settings=attrs.evolve(
            DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "elr", "reassignment_needs_all_targets")
        ),
    ),
    _S99,
    _S99_STUCK,
)


_OLDER: Final = attrs.evolve(DEFAULT_ROLE_SETTINGS, has_zookeeper=True)

_CONTROLLED_BY_3: Final[tuple[Operation, ...]] = tuple(
    HoldMessages(0, 500, "RegisterController", sender=broker) for broker in range(3)
)
"""Broker 3, which holds no replica, creates the znode /controller first."""


_ZOOKEEPER: Final = (
    Scenario(
        name="S11-zk-before",
        title="LeaderAndIsr for a former broker epoch makes a second leader, with ZooKeeper",
        how="Broker 1 is to lead, dies before the LeaderAndIsr request arrives, and 0 leads in its place. Broker 1 "
        "starts again and the old request arrives, which carries a former broker epoch. Under the rules of 2.1 "
        "broker 1 obeys, and takes a write that no replica ever copies.",
        source="KIP-380, KAFKA-7235",
        role_settings=_OLDER,
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=rules_of("2.1")),
        brokers=4,
        producers=0,
        consumers=0,
        operations=(
            *_CONTROLLED_BY_3,
            reassign_and_elect(4_500, 1, 0, 2)[0],
            HoldMessages(4_990, 30_000, "LeaderAndIsr", receiver=1, count_max=1),
            reassign_and_elect(5_000, 1, 0, 2)[1],
            HoldMessages(5_050, 40_000, "LeaderAndIsr", receiver=1),
            Crash(5_200, 1, 20_000),
            SendRecord(31_000, 1, acks=1),
        ),
        expected_states=(
            ExpectedState(5_100, leader=1, leader_epoch=2),
            ExpectedState(29_000, leader=0, leader_epoch=3),
            ExpectedState(32_000, leader=0, logs=((), (0,), (), ())),
            ExpectedState(59_000, leader=0),
        ),
        expected_responses=(
            no_response("LeaderAndIsrResponse", ErrorCode.STALE_BROKER_EPOCH),
            ExpectedResponses("ProduceResponse", ErrorCode.NONE, 1, 1),
        ),
        lost_values=(0,),
    ),
)


def _searched(on_line: LineSink, scope: QuorumScope) -> tuple[Fact, ...]:
    """Search every history within a scope, print the shortest one that breaks an invariant, and return its length."""
    model = QuorumModel(scope)
    outcome = search(model)
    for line in described(model, outcome.history):
        on_line(line)
    if outcome.fault is not None:
        on_line(outcome.fault)
        on_line(model.state_text(outcome.history[-1]))
        return (Fact("steps to the fault:", outcome.depth),)
    return (Fact("no fault in any state; states searched:", outcome.state_count),)


_SOURCE: Final = "KAFKA-14077, KIP-853, KIP-856"

CONTROLLERS: Final = (
    *_ZOOKEEPER,
    ComponentScenario(
        name="S56",
        title="Controller voter comes back with an empty disk",
        how="A controller loses its disk, with its vote and a record that it had helped to commit, and comes back "
        "under the same id. With KIP-853 a voter is an id and a directory id: the empty disk belongs to no voter.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(records=0)),
        expected=(Fact("no fault in any state; states searched:", 18_792),),
    ),
    ComponentScenario(
        name="S56-before",
        title="Controller voter comes back with an empty disk and a committed record is lost",
        how="A controller loses its disk, with its vote and a record that it had helped to commit, and comes back "
        "under the same id. It helps a candidate without the record to a majority.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(directory_ids=False, violations=(Violation.LOSS,))),
        expected=(Fact("steps to the fault:", 8),),
    ),
)
