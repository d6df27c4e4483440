"""Kafka's bugs of fencing and elections, each without and with its fix: S15 to S17, S24."""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import DurationMs
from replication.scenarios.catalogue.common import QUICK_LAG, QUIET_TRIO, fault, reassign_and_elect, settings_without
from replication.scenarios.operations import Crash, HoldMessages, LosePower, SendRecord
from replication.scenarios.scenario import DEFAULT_ROLE_SETTINGS, ExpectedResponses, ExpectedState, no_response
from replication.scenarios.zombie_controller import ZombieController
from replication.simulation import FaultKind

_S15: Final = attrs.evolve(
    QUIET_TRIO,
    name="S15",
    title="Controller behind the leader refuses AlterPartition",
    how="Leader 0 knows of a change that the former controller, which it still asks, does not know. Broker 2 does not "
    "fetch, and 0 asks to remove it: a controller with older metadata must refuse, as no other node would ever "
    "know.",
    source="KAFKA-14154",
    role_settings=DEFAULT_ROLE_SETTINGS,
    settings=settings_without(lag_ms_max=QUICK_LAG),
    operations=(
        ZombieController(5_000, 12_000),
        *reassign_and_elect(5_100, 0, 2, 1),
        HoldMessages(5_500, 30_000, "Fetch", sender=2),
        SendRecord(5_600, 0),
        SendRecord(8_000, 0),
        Crash(9_000, 0, 40_000),
    ),
    expected_states=(
        ExpectedState(8_900, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), ()), high_watermarks=(0, 0, 0)),
        ExpectedState(25_000, leader=2),
    ),
    expected_responses=(
        ExpectedResponses("AlterPartitionResponse", ErrorCode.NOT_CONTROLLER),
        no_response("ProduceResponse"),
    ),
    lost_values=(),
)

_S16: Final = attrs.evolve(
    QUIET_TRIO,
    name="S16",
    title="Two sessions expire in the same second",
    how="Brokers 1 and 2 are isolated, and their sessions expire in the same second. The controller fences one after "
    "the other, each on the state that the one before left.",
    source="KAFKA-13173",
    plan=(fault(5_000, FaultKind.ISOLATE, 1, 30_000), fault(5_000, FaultKind.ISOLATE, 2, 30_000)),
    expected_states=(ExpectedState(20_000, leader=0, isr=(0,), elr=(2,)), ExpectedState(59_000, leader=0, elr=())),
)

_S17: Final = attrs.evolve(
    QUIET_TRIO,
    name="S17",
    role_settings=DEFAULT_ROLE_SETTINGS,
    title="Last known leader is elected only when it is alive",
    how="No replica is in sync or eligible any more, and 2, which led last, has registered but is fenced. Broker 0 "
    "comes back; the partition waits until 2 is unfenced.",
    source="KAFKA-19522",
    operations=(
        SendRecord(5_000, 0),
        LosePower(6_000, 0, 35_000),
        LosePower(6_000, 1, 20_000),
        HoldMessages(19_900, 60_000, "BrokerHeartbeat", sender=1),
        LosePower(22_000, 2, 24_000),
        HoldMessages(23_900, 50_000, "BrokerHeartbeat", sender=2),
    ),
    expected_states=(
        ExpectedState(18_000, leader=2, isr=(2,), elr=(1,)),
        ExpectedState(40_000, leader=-1, isr=(), elr=(), last_known=(2,)),
        ExpectedState(55_000, leader=2, last_known=()),
    ),
    lost_values=(),
    duration_ms=DurationMs(70_000),
    is_strict=False,
)

_S24: Final = attrs.evolve(
    QUIET_TRIO,
    name="S24",
    title="Eligible replica with an unclean shutdown may not lead",
    how="Broker 1 loses power, and m0 with it, while it is eligible. It comes back without a clean shutdown file, "
    "leaves the ELR, and the partition waits for 0.",
    source="KIP-966",
    operations=(
        SendRecord(5_000, 0),
        Crash(6_000, 2, 55_000),
        LosePower(16_000, 1, 30_000, record_count=1),
        Crash(26_000, 0, 50_000),
    ),
    expected_states=(
        ExpectedState(25_900, leader=0, isr=(0,), elr=(1,)),
        ExpectedState(45_000, leader=-1, isr=(), elr=(0,), logs=((0,), (), (0,))),
        ExpectedState(54_000, leader=0, isr=(0, 1)),
    ),
    lost_values=(),
    duration_ms=DurationMs(70_000),
)


ELECTIONS: Final = (
    _S15,
    attrs.evolve(
        _S15,
        name="S15-before",
        title="Zombie controller agrees to a smaller ISR and committed records are lost",
        how="As S15, but the former controller agrees; 0 commits without 2, which the real controller then elects.",
        settings=settings_without("isr_write_ahead_refused", lag_ms_max=QUICK_LAG),
        expected_states=(
            ExpectedState(8_900, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), ()), high_watermarks=(2, 2, 0)),
            ExpectedState(25_000, leader=2),
        ),
        expected_responses=(
            no_response("AlterPartitionResponse", ErrorCode.NOT_CONTROLLER),
            ExpectedResponses("ProduceResponse", count_min=2),
        ),
        breaks=frozenset({"I5", "I6", "I7", "I8", "I9", "I16"}),
        lost_values=(0, 1),
    ),
    _S16,
    attrs.evolve(
        _S16,
        name="S16-before",
        title="Two sessions expire in the same second and one change undoes the other",
        how="As S16, but both changes start from the same state: the second puts a fenced broker back into the ISR.",
        settings=settings_without("fence_one_at_a_time"),
        expected_states=(ExpectedState(20_000, leader=0, isr=(0, 1)),),
        breaks=frozenset({"I3"}),
    ),
    _S17,
    attrs.evolve(
        _S17,
        name="S17-before",
        title="Fenced last known leader is elected",
        how="As S17: 2, which has registered but is fenced, is elected and fenced again; so it counts as eligible "
        "though it may have lost records.",
        settings=settings_without("last_known_leader_alive"),
        expected_states=(
            _S17.expected_states[0],
            ExpectedState(40_000, leader=-1, isr=(), elr=(2,)),
            _S17.expected_states[2],
        ),
        breaks=frozenset({"I25"}),
    ),
    _S24,
    attrs.evolve(
        _S24,
        name="S24-before",
        title="Eligible replica with an unclean shutdown is elected and a committed record is lost",
        how="As S24, but 1 stays in the ELR and is elected without m0.",
        settings=settings_without("elr_excludes_unclean"),
        expected_states=(_S24.expected_states[0], ExpectedState(45_000, leader=1, isr=(1,))),
        breaks=frozenset({"I6", "I7", "I9", "I16", "I25"}),
        lost_values=(0,),
    ),
)
