"""Scenarios of logs that part: the bugs of truncation that Kafka has had, each as it was and as it is.

It decides nothing; it is data. S01 to S03.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.units import DurationMs
from replication.rules.switches import CURRENT, Truncation, rules_of, without
from replication.scenarios.acts import Crashed, Held, PowerCut, Written
from replication.scenarios.catalogue.parts import (
    ALONE,
    COMMON_EPOCH,
    LOSS,
    PAIR,
    THREE_TURNS,
    UNCLEAN,
    moved_to,
)
from replication.scenarios.scenario import Answers, Look, never
from replication.scenarios.script import DIVERGING

_TO_HIGH_WATERMARK: Final = attrs.evolve(ALONE, rules=attrs.evolve(CURRENT, truncation=Truncation.TO_HIGH_WATERMARK))

_S01: Final = attrs.evolve(
    PAIR,
    name="S01",
    title="a follower that cuts its log at its own high watermark",
    how="Both replicas hold m0, and the leader has committed it; follower 1 does not know that yet as a new epoch "
    "makes it look for its place in the leader's log anew. The leader dies before 1 fetches again, and 1 leads.",
    source="KIP-101, scenario 1",
    acts=(
        Written(5_000, 0),
        Held(5_050, 5_200, "MetadataFetchResponse", receiver=1),
        *moved_to(5_060, 1, 0),
        *moved_to(5_100, 0, 1),
        Held(5_150, 30_000, "Fetch", sender=1),
        Crashed(5_300, 0, 30_000),
    ),
    looks=(
        Look(5_040, leader=0, isr=(0, 1), logs=((0,), (0,)), highs=(1, 0)),
        Look(5_250, leader=0, leader_epoch=2, logs=((0,), (0,))),
        Look(20_000, leader=1, isr=(1,), logs=((0,), (0,))),
        Look(44_000, leader=1, logs=((0,), (0,))),
    ),
    gone=(),
)

_S02: Final = attrs.evolve(
    PAIR,
    name="S02",
    title="logs that differ after a power failure of both",
    how="0 has m0 and m1 and has committed both; 1 loses m1 with its power. 1 is back first, leads and writes m2 "
    "where 0 has m1. 0 comes back and believes in its own high watermark, or compares epochs.",
    source="KIP-101, scenario 2; KAFKA-3919",
    settings=attrs.evolve(ALONE, rules=without(CURRENT, "elr")),
    acts=(
        Written(5_000, 0),
        Written(5_050, 0),
        PowerCut(12_000, 0, 40_000),
        PowerCut(12_000, 1, 25_000, record_count=1),
        Written(35_000, 1),
    ),
    looks=(
        Look(11_000, leader=0, isr=(0, 1), logs=((0, 1), (0, 1)), highs=(2, 2)),
        Look(24_000, leader=-1, isr=(1,)),
        Look(39_000, leader=1, isr=(1,), logs=((0, 1), (0, 2))),
        Look(59_000, leader=1, isr=(1, 0), logs=((0, 2), (0, 2))),
    ),
    breaks=frozenset({"I4", "I5", "I6", "I7", "I22"}),
    gone=(1,),
    duration_ms=DurationMs(60_000),
    is_strict=False,
)

_S03: Final = attrs.evolve(
    PAIR,
    name="S03",
    title="a fail-over there and back",
    how="0 leads, then 1 and then 0 again within one fetch. 1 has the committed m0, has led for a moment and has m1 "
    "on top; it asks 0, which knows nothing of the epochs between, where to cut.",
    source="KIP-279, KAFKA-6361",
    acts=(
        Written(5_000, 0),
        Held(5_050, 5_250, "MetadataFetchResponse", receiver=0),
        *moved_to(5_060, 1, 0),
        Written(5_080, 1),
        *moved_to(5_100, 0, 1),
        Held(5_115, 30_000, "Fetch", sender=1),
        Crashed(7_000, 0, 30_000),
    ),
    looks=(
        Look(5_090, leader=1, leader_epoch=1, logs=((0,), (0, 1)), highs=(1, 0)),
        Look(6_000, leader=0, leader_epoch=2, logs=((0,), (0, 1))),
        Look(20_000, leader=1, isr=(1,), logs=((0,), (0, 1))),
    ),
    gone=(),
)

_S03B: Final = attrs.evolve(
    PAIR,
    name="S03b",
    title="three fast fail-overs: two rounds to find the common point",
    how="0 has m0 m2, 1 has m0 m1 m3, each from epochs that the other does not know. Told of the nearest epoch "
    "below, 1 cuts, and is told again.",
    source="KIP-279, scenario 3; KAFKA-10554",
    acts=THREE_TURNS,
    looks=(
        Look(5_590, leader=0, leader_epoch=0, logs=((0,), (0,)), highs=(1, 1)),
        Look(5_990, leader=1, leader_epoch=3, logs=((0, 2), (0, 1, 3))),
        Look(10_000, leader=0, leader_epoch=4, logs=((0, 2), (0, 2))),
    ),
    answers=(Answers(DIVERGING, count_min=2, count_max=2), never("OffsetsForLeaderEpochResponse")),
    gone=(),
)

_S03C: Final = attrs.evolve(
    PAIR,
    name="S03c",
    title="logs that part at an unclean election",
    how="1 led for a moment and alone has m1; then 0 leads and commits m2 alone. 1 is elected uncleanly, and 0 "
    "comes back: the epochs say where the logs part, the end of one epoch alone does not.",
    source="KIP-101, which leaves the case out; KIP-279",
    settings=attrs.evolve(UNCLEAN, min_isr=1),
    acts=(
        Written(5_000, 0),
        Held(5_590, 12_000, "Fetch", sender=0),
        Held(5_590, 12_000, "OffsetsForLeaderEpoch", sender=0),
        *moved_to(5_600, 1, 0),
        Written(5_650, 1),
        Crashed(5_700, 1, 30_000),
        Written(16_000, 0),
        Crashed(20_000, 0, 40_000),
    ),
    looks=(
        Look(18_000, leader=0, isr=(0,), logs=((0, 2), (0, 1))),
        Look(35_000, leader=1, isr=(1,)),
        Look(54_000, leader=1, logs=((0, 1), (0, 1))),
    ),
    lost_min=1,
    lost_max=1,
    gone=(2,),
    duration_ms=DurationMs(55_000),
)


HISTORY_OF_TRUNCATION: Final = (
    _S01,
    attrs.evolve(
        _S01,
        name="S01-before",
        settings=_TO_HIGH_WATERMARK,
        looks=(
            _S01.looks[0],
            Look(5_250, leader=0, leader_epoch=2, logs=((0,), ())),
            Look(20_000, leader=1, isr=(1,), logs=((0,), ())),
            Look(44_000, leader=1, logs=((), ())),
        ),
        breaks=LOSS,
        gone=(0,),
    ),
    _S02,
    attrs.evolve(
        _S02,
        name="S02-before",
        settings=attrs.evolve(_TO_HIGH_WATERMARK, rules=without(_TO_HIGH_WATERMARK.rules, "elr")),
        looks=(*_S02.looks[:3], Look(59_000, leader=1, isr=(1, 0), logs=((0, 1), (0, 2)))),
        breaks=frozenset({"I5", "I6", "I7", "I22"}),
    ),
    _S03,
    attrs.evolve(
        _S03,
        name="S03-before",
        settings=attrs.evolve(ALONE, rules=rules_of("0.11")),
        looks=(_S03.looks[0], Look(6_000, logs=((0,), ())), Look(20_000, leader=1, logs=((0,), ()))),
        breaks=LOSS,
        gone=(0,),
    ),
    _S03B,
    attrs.evolve(
        _S03B,
        name="S03b-2.7",
        title="the same with questions about epochs, as until 2.7",
        settings=attrs.evolve(ALONE, rules=COMMON_EPOCH),
        answers=(never(DIVERGING), Answers("OffsetsForLeaderEpochResponse", count_min=2, count_max=2)),
    ),
    attrs.evolve(
        _S03B,
        name="S03b-before",
        title="the same with one question, as before KIP-279",
        settings=attrs.evolve(ALONE, rules=attrs.evolve(CURRENT, truncation=Truncation.BY_LEADER_EPOCH)),
        looks=(*_S03B.looks[:2], Look(10_000, leader=0, leader_epoch=4, logs=((0, 2), (0, 1)))),
        answers=(Answers("OffsetsForLeaderEpochResponse", count_min=1, count_max=1),),
        breaks=frozenset({"I4", "I5", "I6"}),
    ),
    _S03C,
    attrs.evolve(
        _S03C,
        name="S03c-before",
        settings=attrs.evolve(
            _S03C.settings, rules=attrs.evolve(without(CURRENT, "elr"), truncation=Truncation.BY_LEADER_EPOCH)
        ),
        looks=(*_S03C.looks[:2], Look(54_000, leader=1, logs=((0, 2), (0, 1)))),
        breaks=frozenset({"I4", "I5", "I6"}),
    ),
)
"""S01 to S03."""
