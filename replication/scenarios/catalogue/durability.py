"""Scenarios of followers that lag, of small ISRs, and of clocks: what is committed, when, and what clients are told.

It decides nothing; it is data. S28, S29, S31, S32, S35, S44 to S46.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import HOUR_MS, DurationMs, SizeBytes
from replication.rules.switches import CURRENT, without
from replication.scenarios.acts import Crashed, Held, Written
from replication.scenarios.catalogue.parts import PATIENT, UNCLEAN, fault
from replication.scenarios.reader import Reads
from replication.scenarios.scenario import DEFAULT_SETTINGS, DEFAULT_TERMS, Answers, Look, Scenario, never
from replication.simulation import FaultKind

_S28: Final = Scenario(
    name="S28",
    title="a follower that dies under a write",
    how="0 and 1 are in sync; 1 dies before it fetches what was just written. The client is told that its write is "
    "late, but it is committed when 1 is back: what failed for the client is seen by consumers.",
    source="KAFKA-15583; Vanlightly/kafka-tlaplus, section 2.7",
    producers=0,
    acts=(Crashed(4_000, 2, 65_000), Crashed(20_000, 1, 40_000), Written(26_000, 0)),
    looks=(
        Look(25_900, leader=0, isr=(0, 1)),
        Look(39_000, leader=0, isr=(0,), elr=(1,), logs=((0,), (), ()), highs=(0, 0, 0)),
        Look(59_000, leader=0, isr=(0, 1), elr=(), logs=((0,), (0,), ()), highs=(1, 1, 0)),
    ),
    answers=(Answers("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT, 1, 1),),
    gone=(),
)

_S31: Final = Scenario(
    name="S31",
    title="an idle partition",
    how="Broker 2 is silent for a minute, but nothing is written: it has everything and stays.",
    source="KAFKA-7152",
    producers=0,
    consumers=0,
    plan=(fault(5_000, FaultKind.CUT_PEERS, 2, 60_000),),
    acts=(Written(4_000, 0),),
    looks=(Look(64_000, leader=0, isr=(0, 1, 2)),),
    duration_ms=DurationMs(70_000),
    gone=(),
)

_S32: Final = Scenario(
    name="S32",
    title="a follower that is stopping",
    how="Broker 2 is told to stop and has left the ISR, with everything. The leader must not wait for it any more.",
    source="KAFKA-15021",
    role_settings=PATIENT,
    producers=0,
    consumers=0,
    plan=(fault(5_000, FaultKind.STOP, 2, 20_000),),
    acts=(
        Held(5_000, 20_000, "BrokerHeartbeatResponse", receiver=2),
        Held(7_500, 30_000, "FetchResponse", receiver=2),
        Written(9_000, 0),
    ),
    looks=(Look(8_900, leader=0, isr=(0, 1)), Look(9_100, isr=(0, 1), highs=(1, 0, 0))),
    answers=(Answers("ProduceResponse", ErrorCode.NONE),),
    gone=(),
)

_S46: Final = Scenario(
    name="S46",
    title="in and out of the ISR, for ever",
    how="Alone in sync, 0 takes acks=1 writes, which are not committed. 1 is slow but has all that is committed: it "
    "joins, is dropped for its lag, and joins again.",
    source="KAFKA-19996, open",
    settings=attrs.evolve(DEFAULT_TERMS, lag_ms_max=DurationMs(2_000)),
    role_settings=attrs.evolve(DEFAULT_SETTINGS, fetch_bytes_max=SizeBytes(100)),
    plan=(
        fault(5_000, FaultKind.KILL, 2, 60_000),
        fault(5_000, FaultKind.KILL, 1, 20_000),
        fault(24_000, FaultKind.SLOW, 1, 40_000, 600),
    ),
    producers=2,
    consumers=0,
    acks=(1,),
    produce_ms=DurationMs(250),
    answers=(Answers("AlterPartitionResponse", count_min=12),),
    looks=(Look(24_000, leader=0, isr=(0,)),),
)

_S47: Final = Scenario(
    name="S47",
    title="a consumer whose place in the log is gone",
    how="A consumer has read m0 m1 m2. 1, which has only m0, is elected uncleanly and takes m3 m4 m5. The consumer "
    "asks where the epoch of m2 ends there, and goes back to that place.",
    source="KIP-320",
    settings=attrs.evolve(UNCLEAN, min_isr=1),
    brokers=2,
    replication_factor=2,
    producers=0,
    consumers=0,
    acts=(
        Reads(checks=True),
        Written(5_000, 0),
        Crashed(6_000, 1, 40_000),
        Written(17_000, 0),
        Written(17_100, 0),
        Crashed(20_000, 0, 70_000),
        *(Written(45_000 + 100 * number, 1) for number in range(3)),
    ),
    looks=(
        Look(19_000, leader=0, isr=(0,), logs=((0, 1, 2), (0,))),
        Look(50_000, leader=1, isr=(1,), logs=((0, 1, 2), (0, 3, 4, 5))),
    ),
    gone=(1, 2),
    seen=((0, 1, 2, 3, 4, 5),),
)

DURABILITY: Final = (
    _S28,
    attrs.evolve(
        _S28,
        name="S28-before",
        how="As S28, but 0 commits alone once 1 is out: the client is told that too few replicas hold its record.",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "elr", "strict_min_isr")),
        looks=(Look(39_000, leader=0, isr=(0,), logs=((0,), (), ()), highs=(1, 0, 0)),),
        answers=(Answers("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 1, 1),),
    ),
    Scenario(
        name="S29",
        title="a follower that is always one fetch behind",
        how="Answers to broker 2 take 0.4 s, and something is written all the time: it never has everything, but "
        "always what there was at its last fetch, and stays.",
        source="Kafka Replica.updateFetchStateOrThrow",
        settings=attrs.evolve(DEFAULT_TERMS, lag_ms_max=DurationMs(1_500)),
        plan=(fault(5_000, FaultKind.SLOW, 2, 30_000, 400),),
        consumers=0,
        produce_ms=DurationMs(100),
        acks=(1,),
        duration_ms=DurationMs(36_000),
        looks=(Look(34_000, leader=0, isr=(0, 1, 2)),),
        answers=(never("AlterPartitionResponse"),),
    ),
    _S31,
    attrs.evolve(
        _S31,
        name="S31-before",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "caught_up_at_end_offset")),
        looks=(Look(64_000, leader=0, isr=(0, 1)),),
    ),
    _S32,
    attrs.evolve(
        _S32,
        name="S32-before",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "high_watermark_ignores_ineligible")),
        looks=(Look(8_900, leader=0, isr=(0, 1)), Look(9_100, isr=(0, 1), highs=(0, 0, 0))),
        answers=(Answers("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT),),
    ),
    Scenario(
        name="S35",
        title="a follower that is heard and hears nothing",
        how="Broker 2 reports to the controller and fetches, but no answer reaches it: its fetches stand still, and "
        "it is dropped like one that is silent.",
        source="the asymmetric mode of TigerBeetle's VOPR; Kafka Partition.maybeShrinkIsr",
        plan=(fault(5_000, FaultKind.DEAF, 2, 65_000),),
        looks=(Look(34_000, isr=(0, 1, 2)), Look(52_000, leader=0, isr=(0, 1)), Look(89_000, isr=(0, 1, 2))),
        duration_ms=DurationMs(90_000),
    ),
    Scenario(
        name="S44",
        title="a clock that is an hour ahead",
        how="Broker 1 is an hour ahead of the others. Each leader goes by its own clock, so that nobody leaves the "
        "ISR, under 0 as leader and then under 1.",
        source="ours",
        plan=(
            fault(2_000, FaultKind.CLOCK_JUMP, 1, 0, HOUR_MS),
            fault(40_000, FaultKind.KILL, 0, 15_000),
        ),
        looks=(Look(39_000, leader=0, isr=(0, 1, 2)), Look(53_000, leader=1, isr=(1, 2)), Look(89_000, isr=(1, 2, 0))),
        duration_ms=DurationMs(90_000),
    ),
    Scenario(
        name="S45",
        title="a leader's clock jumps",
        how="The clock of broker 0 jumps by 40 s under load: whoever lacks a record at that instant counts as late, "
        "leaves the ISR and comes back; nothing is lost.",
        source="ours",
        role_settings=PATIENT,
        producers=0,
        consumers=0,
        plan=(fault(14_900, FaultKind.CLOCK_JUMP, 0, 0, 40_000),),
        acts=(
            Held(14_800, 15_600, "Fetch", sender=1),
            Held(14_800, 15_600, "Fetch", sender=2),
            Written(14_850, 0),
        ),
        looks=(
            Look(14_880, leader=0, isr=(0, 1, 2), highs=(0, 0, 0)),
            Look(15_500, leader=0, isr=(0,), elr=(1, 2), highs=(0, 0, 0)),
            Look(59_000, leader=0, isr=(0, 1, 2), elr=(), highs=(1, 1, 1)),
        ),
        gone=(),
    ),
    _S47,
    attrs.evolve(
        _S47,
        name="S47-before",
        how="As S47, but the consumer goes on at its offset, in another history: it is never shown m3 and m4.",
        acts=(Reads(checks=False), *_S47.acts[1:]),
        seen=((0, 1, 2, 5),),
    ),
    _S46,
    attrs.evolve(
        _S46,
        name="S46-after",
        title="in and out of the ISR, with the fix that is proposed",
        how="As S46, but under min.insync.replicas only who has everything joins.",
        settings=attrs.evolve(_S46.settings, rules=attrs.evolve(CURRENT, isr_join_caught_up_under_min_isr=True)),
        answers=(Answers("AlterPartitionResponse", count_max=6),),
    ),
)
"""S28, S29, S31, S32, S35, S44 to S46."""
