"""Scenarios of who is in sync: the bugs of the ISR that Kafka has had, each as it was and as it is.

It decides nothing; it is data. S06, S09 to S12.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from replication.scenarios.acts import Crashed, Held, Written
from replication.scenarios.catalogue.parts import LOSS, QUICK_LAG, QUIET_TRIO, fault, moved_to, terms_without
from replication.scenarios.scenario import DEFAULT_SETTINGS, Answers, Look, never
from replication.simulation import FaultKind

_S06: Final = attrs.evolve(
    QUIET_TRIO,
    name="S06",
    title="joining before the leader's epoch",
    how="0 and 2 hold the committed m0, and 2 becomes leader before it knows that m0 is committed. 1 comes back "
    "empty: the high watermark of 2 is no reason to let it in. Then 2 dies.",
    source="KAFKA-7128",
    acts=(
        Crashed(4_000, 1, 14_300),
        Written(14_000, 0),
        Held(14_040, 40_000, "Fetch", sender=0),
        Held(14_040, 40_000, "FetchResponse", receiver=1),
        Held(14_290, 14_600, "Fetch", sender=1, count_max=1),
        *moved_to(14_050, 2, 1, 0),
        Crashed(15_000, 2, 45_000),
    ),
    looks=(
        Look(14_040, leader=0, isr=(0, 2), logs=((0,), (), (0,)), highs=(1, 0, 0)),
        Look(14_900, leader=2, isr=(0, 2), logs=((0,), (), (0,))),
        Look(30_000, leader=0, isr=(0,)),
    ),
    gone=(),
)

_S09: Final = attrs.evolve(
    QUIET_TRIO,
    name="S09",
    title="a smaller ISR taken for granted",
    how="1 is silent, and 0 asks to drop it; the request is late. If 0 commits m0 with 2 alone before the "
    "controller has agreed, the controller may elect 1, without m0.",
    source="KIP-497 (AsyncIsr in hachikuji/kafka-specification)",
    settings=terms_without(lag_ms_max=QUICK_LAG),
    acts=(
        Held(5_000, 30_000, "Fetch", sender=1),
        Held(5_000, 30_000, "AlterPartition", sender=0),
        Written(5_600, 0),
        Written(7_500, 0),
        Crashed(9_000, 0, 40_000),
    ),
    looks=(
        Look(8_900, leader=0, isr=(0, 1, 2), logs=((0, 1), (), (0, 1)), highs=(0, 0, 0)),
        Look(20_000, leader=1, isr=(1, 2)),
    ),
    answers=(never("ProduceResponse"),),
    gone=(),
)

_S10: Final = attrs.evolve(
    QUIET_TRIO,
    name="S10",
    title="a larger ISR that is not reckoned with",
    how="0 asks to add 1, and goes on committing with 2 alone while the request is on its way. The controller adds "
    "1, 0 dies, and 1 is elected without m0. No disk has failed.",
    source="KIP-497; Vanlightly/kafka-tlaplus, section 6.5.2",
    settings=terms_without(lag_ms_max=QUICK_LAG),
    acts=(
        Crashed(4_000, 1, 15_000),
        Held(14_000, 17_100, "AlterPartition", sender=0),
        Held(14_000, 40_000, "FetchResponse", receiver=1),
        Written(16_700, 0),
        Crashed(17_300, 0, 45_000),
    ),
    looks=(
        Look(17_000, leader=0, isr=(0, 2), logs=((0,), (), (0,)), highs=(0, 0, 0)),
        Look(17_250, leader=0, isr=(0, 2, 1)),
        Look(30_000, leader=1),
    ),
    answers=(never("ProduceResponse"),),
    gone=(),
)

_S11: Final = attrs.evolve(
    QUIET_TRIO,
    name="S11",
    role_settings=DEFAULT_SETTINGS,
    title="a replica that has started anew",
    how="0 asks to add 1, which has everything; before the request arrives, 1 loses its disk and registers again. "
    "It must not join for what its former life held.",
    source="KIP-903, KAFKA-14617",
    plan=(fault(16_500, FaultKind.WIPE, 1, 500),),
    acts=(
        Written(5_000, 0),
        Crashed(6_000, 1, 16_000),
        Held(15_500, 27_500, "AlterPartition", sender=0),
        Held(16_600, 60_000, "FetchResponse", receiver=1),
        Crashed(28_500, 0, 55_000),
    ),
    looks=(
        Look(27_000, leader=0, isr=(0, 2), logs=((0,), (), (0,))),
        Look(28_000, leader=0, isr=(0, 2)),
        Look(45_000, leader=2),
    ),
    answers=(Answers("AlterPartitionResponse", ErrorCode.INELIGIBLE_REPLICA),),
    gone=(),
)

_S12: Final = attrs.evolve(
    QUIET_TRIO,
    name="S12",
    title="a replica that was fenced meanwhile",
    how="0 asks to add 1; 1 dies and is fenced before the request arrives. Let in all the same, it holds the high "
    "watermark back, and writes are not answered.",
    source="KIP-841",
    acts=(
        Crashed(6_000, 1, 16_000),
        Held(15_500, 28_000, "AlterPartition", sender=0),
        Crashed(17_000, 1, 50_000),
        Written(28_500, 0),
    ),
    looks=(
        Look(27_900, leader=0, isr=(0, 2)),
        Look(28_400, leader=0, isr=(0, 2)),
        Look(45_000, leader=0, isr=(0, 2), highs=(1, 0, 1)),
    ),
    answers=(
        Answers("AlterPartitionResponse", ErrorCode.INELIGIBLE_REPLICA),
        never("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT),
    ),
    gone=(),
)


HISTORY_OF_THE_ISR: Final = (
    _S06,
    attrs.evolve(
        _S06,
        name="S06-before",
        settings=terms_without("isr_join_epoch_start"),
        looks=(_S06.looks[0], Look(14_900, leader=2, isr=(0, 2, 1)), Look(30_000, leader=1)),
        breaks=frozenset({"I6", "I7", "I9", "I16"}),
        gone=(0,),
    ),
    _S09,
    attrs.evolve(
        _S09,
        name="S09-before",
        settings=terms_without("maximal_isr", lag_ms_max=QUICK_LAG),
        looks=(
            Look(8_900, leader=0, isr=(0, 1, 2), logs=((0, 1), (), (0, 1)), highs=(2, 0, 2)),
            Look(20_000, leader=1, isr=(1, 2)),
        ),
        answers=(Answers("ProduceResponse"),),
        breaks=LOSS,
        gone=(0, 1),
    ),
    _S10,
    attrs.evolve(
        _S10,
        name="S10-before",
        settings=terms_without("maximal_isr", lag_ms_max=QUICK_LAG),
        looks=(Look(17_000, leader=0, isr=(0, 2), highs=(1, 0, 0)), *_S10.looks[1:]),
        answers=(Answers("ProduceResponse"),),
        breaks=frozenset({"I4", "I5", "I6", "I7", "I9", "I16"}),
        gone=(0,),
    ),
    _S11,
    attrs.evolve(
        _S11,
        name="S11-before",
        settings=terms_without("isr_join_broker_epoch"),
        looks=(_S11.looks[0], Look(28_000, leader=0, isr=(0, 2, 1)), Look(45_000, leader=1)),
        answers=(never("AlterPartitionResponse", ErrorCode.INELIGIBLE_REPLICA),),
        breaks=frozenset({"I5", "I6", "I7", "I9", "I16"}),
        gone=(0,),
    ),
    _S12,
    attrs.evolve(
        _S12,
        name="S12-before",
        settings=terms_without("isr_join_eligibility", "isr_join_broker_epoch"),
        looks=(_S12.looks[0], Look(28_400, leader=0, isr=(0, 2, 1))),
        answers=(
            never("AlterPartitionResponse", ErrorCode.INELIGIBLE_REPLICA),
            Answers("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT),
        ),
        breaks=frozenset({"I2"}),
    ),
)
"""S06, S09 to S12."""
