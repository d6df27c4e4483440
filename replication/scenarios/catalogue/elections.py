"""Scenarios of who may lead: the bugs of fencing and elections that Kafka has had, each as it was and as it is.

It decides nothing; it is data. S15 to S17, S24 to S26.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import DurationMs
from replication.scenarios.acts import Crashed, Held, PowerCut, Written
from replication.scenarios.catalogue.parts import QUICK_LAG, QUIET_TRIO, fault, moved_to, terms_without
from replication.scenarios.scenario import DEFAULT_SETTINGS, Answers, Look, never
from replication.scenarios.zombie_controller import ZombieController
from replication.simulation import FaultKind

_S15: Final = attrs.evolve(
    QUIET_TRIO,
    name="S15",
    title="a controller that was replaced",
    how="0 knows of a change that the former controller, which it still asks, has not seen. 2 is silent, and 0 asks "
    "to drop it: a controller behind the leader must not agree, as nobody else would ever know.",
    source="KAFKA-14154",
    role_settings=DEFAULT_SETTINGS,
    settings=terms_without(lag_ms_max=QUICK_LAG),
    acts=(
        ZombieController(5_000, 12_000),
        *moved_to(5_100, 0, 2, 1),
        Held(5_500, 30_000, "Fetch", sender=2),
        Written(5_600, 0),
        Written(8_000, 0),
        Crashed(9_000, 0, 40_000),
    ),
    looks=(
        Look(8_900, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), ()), highs=(0, 0, 0)),
        Look(25_000, leader=2),
    ),
    answers=(Answers("AlterPartitionResponse", ErrorCode.NOT_CONTROLLER), never("ProduceResponse")),
    gone=(),
)

_S16: Final = attrs.evolve(
    QUIET_TRIO,
    name="S16",
    title="two sessions that end together",
    how="1 and 2 are heard of no more, and their sessions end in the same second. Each change is made on the one "
    "before, or the second undoes the first.",
    source="KAFKA-13173",
    plan=(fault(5_000, FaultKind.ISOLATE, 1, 30_000), fault(5_000, FaultKind.ISOLATE, 2, 30_000)),
    looks=(Look(20_000, leader=0, isr=(0,), elr=(2,)), Look(59_000, leader=0, elr=())),
)

_S17: Final = attrs.evolve(
    QUIET_TRIO,
    name="S17",
    role_settings=DEFAULT_SETTINGS,
    title="the last known leader, dead",
    how="Nobody is in sync or eligible any more, and 2, which led last, has registered but is fenced. 0 comes back: "
    "2 must not be made leader before it is alive.",
    source="KAFKA-19522",
    acts=(
        Written(5_000, 0),
        PowerCut(6_000, 0, 35_000),
        PowerCut(6_000, 1, 20_000),
        Held(19_900, 60_000, "BrokerHeartbeat", sender=1),
        PowerCut(22_000, 2, 24_000),
        Held(23_900, 50_000, "BrokerHeartbeat", sender=2),
    ),
    looks=(
        Look(18_000, leader=2, isr=(2,), elr=(1,)),
        Look(40_000, leader=-1, isr=(), elr=(), last_known=(2,)),
        Look(55_000, leader=2, last_known=()),
    ),
    gone=(),
    duration_ms=DurationMs(70_000),
    is_strict=False,
)

_S24: Final = attrs.evolve(
    QUIET_TRIO,
    name="S24",
    title="eligible, but without the end of its log",
    how="1 loses power, and m0 with it, while it is eligible. It must not lead for that: it comes back without a "
    "proof of a clean stop, and the partition waits for 0.",
    source="KIP-966",
    acts=(
        Written(5_000, 0),
        Crashed(6_000, 2, 55_000),
        PowerCut(16_000, 1, 30_000, record_count=1),
        Crashed(26_000, 0, 50_000),
    ),
    looks=(
        Look(25_900, leader=0, isr=(0,), elr=(1,)),
        Look(45_000, leader=-1, isr=(), elr=(0,), logs=((0,), (), (0,))),
        Look(54_000, leader=0, isr=(0, 1)),
    ),
    gone=(),
    duration_ms=DurationMs(70_000),
)

_S25: Final = attrs.evolve(
    QUIET_TRIO,
    name="S25",
    title="two losses at a time, with min.insync.replicas 2",
    how="Both replicas that hold m0 lose it with their power. That is one loss more than two in-sync replicas are "
    "good for: the record is gone, the run says by what, and nobody reads two values at one offset.",
    source="KIP-966; Vanlightly/kafka-tlaplus: f = min.insync.replicas - 1",
    acts=(
        Crashed(4_000, 2, 45_000),
        Written(14_000, 0),
        PowerCut(16_000, 0, 30_000, record_count=1),
        PowerCut(16_000, 1, 30_000, record_count=1),
        Written(40_000, 1),
    ),
    looks=(
        Look(15_000, leader=0, isr=(0, 1), logs=((0,), (0,), ())),
        Look(29_000, leader=-1, isr=(), elr=(0, 1), last_known=(1,)),
    ),
    gone=(0,),
    is_strict=False,
)

_S26: Final = attrs.evolve(
    QUIET_TRIO,
    name="S26",
    title="a power failure of all, with ELR",
    how="0 and 2 lose m0, 1 keeps it, but none can prove it. Kafka waits for the last leader, 2, and m0 is lost "
    "though 1 has it; comparing logs (the second part of KIP-966) is not released.",
    source="KIP-966; Vanlightly/kafka-tlaplus, section 5.3.3",
    acts=(
        Written(5_000, 0),
        PowerCut(6_000, 0, 30_000, record_count=1),
        PowerCut(6_000, 1, 32_000),
        PowerCut(6_000, 2, 40_000, record_count=1),
    ),
    looks=(
        Look(38_000, leader=-1, isr=(), elr=(2,), last_known=(2,), logs=((), (0,), ())),
        Look(59_000, leader=2),
    ),
    gone=(0,),
    is_strict=False,
)

HISTORY_OF_ELECTIONS: Final = (
    _S15,
    attrs.evolve(
        _S15,
        name="S15-before",
        settings=terms_without("isr_write_ahead_refused", lag_ms_max=QUICK_LAG),
        looks=(
            Look(8_900, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), ()), highs=(2, 2, 0)),
            Look(25_000, leader=2),
        ),
        answers=(never("AlterPartitionResponse", ErrorCode.NOT_CONTROLLER), Answers("ProduceResponse", count_min=2)),
        breaks=frozenset({"I5", "I6", "I7", "I8", "I9", "I16"}),
        gone=(0, 1),
    ),
    _S16,
    attrs.evolve(
        _S16,
        name="S16-before",
        settings=terms_without("fence_one_at_a_time"),
        looks=(Look(20_000, leader=0, isr=(0, 1)),),
        breaks=frozenset({"I3"}),
    ),
    _S17,
    attrs.evolve(
        _S17,
        name="S17-before",
        how="As S17: 2, which has registered but is not alive, is made leader, and fenced; so it counts as eligible "
        "again, without a word of the records that it may have lost.",
        settings=terms_without("last_known_leader_alive"),
        looks=(_S17.looks[0], Look(40_000, leader=-1, isr=(), elr=(2,)), _S17.looks[2]),
        breaks=frozenset({"I25"}),
    ),
    _S24,
    attrs.evolve(
        _S24,
        name="S24-before",
        settings=terms_without("elr_excludes_unclean"),
        looks=(_S24.looks[0], Look(45_000, leader=1, isr=(1,))),
        breaks=frozenset({"I6", "I7", "I9", "I16", "I25"}),
        gone=(0,),
    ),
    _S25,
    _S26,
)
"""S15 to S17, S24 to S26."""
