"""Scenarios of logs that part by news that comes late: more bugs of truncation, each as it was and as it is.

It decides nothing; it is data. S04, S05, S07, S08, S13 and S14.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.units import DurationMs
from replication.rules.switches import CURRENT, rules_of, without
from replication.scenarios.acts import Crashed, Held, ReadFrom, Written
from replication.scenarios.catalogue.parts import (
    ALONE,
    COMMON_EPOCH,
    LOSS,
    PAIR,
    QUICK_LAG,
    THREE_TURNS,
    TRIO,
    moved_to,
)
from replication.scenarios.scenario import DEFAULT_TERMS, Answers, Look

_S04: Final = attrs.evolve(
    TRIO,
    name="S04",
    title="news that comes too late",
    how="0, 1 and 0 again are made leaders. 1 has not heard of the end of its epoch and leads an empty log. 0 and 2 "
    "commit m0 in the last epoch; then 2 learns, late, of the epoch of 1, and looks for its place in that log.",
    source="KIP-320",
    settings=attrs.evolve(DEFAULT_TERMS, lag_ms_max=QUICK_LAG),
    acts=(
        moved_to(4_500, 1, 0, 2)[0],
        Held(4_990, 7_300, "MetadataFetchResponse", receiver=2),
        moved_to(5_000, 1, 0, 2)[1],
        Held(5_100, 25_000, "MetadataFetchResponse", receiver=1),
        *moved_to(5_150, 0, 1, 2),
        Written(5_300, 0),
        Held(6_060, 25_000, "FetchResponse", sender=0, receiver=2),
        Held(7_290, 19_000, "MetadataFetchResponse", receiver=2),
        Crashed(7_600, 0, 30_000),
    ),
    looks=(Look(5_090, leader=1, leader_epoch=1), Look(5_290, leader=0, leader_epoch=2)),
    gone=(),
)

_S07: Final = attrs.evolve(
    TRIO,
    name="S07",
    title="a leader that has written nothing",
    how="1 leads epoch 1 and gives 2 a record that is not committed; then 0 leads epoch 2 and writes nothing. 2 "
    "asks 0 where epoch 1 ends: whoever has not noted its own epoch cannot tell, and 2 cuts at its high watermark.",
    source="KAFKA-7415",
    settings=attrs.evolve(DEFAULT_TERMS, rules=COMMON_EPOCH),
    acts=(
        Written(5_000, 0),
        Held(5_055, 30_000, "Fetch", sender=0),
        Held(5_055, 30_000, "OffsetsForLeaderEpoch", sender=0),
        *moved_to(5_060, 1, 0, 2),
        Written(5_100, 1),
        *moved_to(5_200, 0, 2, 1),
        Held(5_220, 30_000, "Fetch", sender=2),
        Crashed(5_400, 0, 35_000),
    ),
    looks=(
        Look(5_190, leader=1, logs=((0,), (0, 1), (0, 1))),
        Look(5_390, leader=0, leader_epoch=2, logs=((0,), (0,), (0,))),
        Look(20_000, leader=2, isr=(1, 2), logs=((0,), (0,), (0,))),
    ),
    gone=(),
)

_S08: Final = attrs.evolve(
    PAIR,
    name="S08",
    title="a follower that truncates for ever",
    how="1 has led an epoch without records and lacks a record of the epoch before. It is told to cut where its log "
    "ends anyway; if its epochs are not cut with it, it asks the same question again, and again.",
    source="KAFKA-10706",
    settings=attrs.evolve(ALONE, rules=COMMON_EPOCH),
    acts=(
        Written(5_000, 0),
        Held(5_590, 6_500, "Fetch", sender=1),
        Held(5_590, 6_500, "OffsetsForLeaderEpoch", sender=1, count_max=1),
        *moved_to(5_600, 1, 0),
        *moved_to(5_620, 0, 1),
        Written(5_700, 0),
        Held(5_790, 20_000, "Fetch", sender=0),
        Held(5_790, 20_000, "OffsetsForLeaderEpoch", sender=0),
        *moved_to(5_800, 1, 0),
        *moved_to(5_900, 0, 1),
    ),
    looks=(Look(5_890, leader=1, logs=((0, 1), (0,))), Look(9_000, leader=0, logs=((0, 1), (0, 1)))),
    answers=(Answers("OffsetsForLeaderEpochResponse", count_min=1, count_max=10),),
    gone=(),
    duration_ms=DurationMs(10_000),
    heal_ms_max=DurationMs(2_000),
)

_S13: Final = attrs.evolve(
    TRIO,
    name="S13",
    title="a consumer at a follower whose log parts from the leader's",
    how="As S03b with a third replica, with which 0 commits m2 where 1 has m1. Between its two cuts 1 is asked for "
    "that offset: it must not take m1 for committed.",
    source="KAFKA-14704",
    settings=attrs.evolve(DEFAULT_TERMS, lag_ms_max=QUICK_LAG),
    acts=(
        *(THREE_TURNS[:4]),
        *moved_to(5_600, 1, 0, 2),
        Written(5_650, 1),
        Held(5_690, 5_900, "MetadataFetchResponse", receiver=1),
        *moved_to(5_700, 0, 1, 2),
        Written(5_750, 0),
        *moved_to(5_800, 1, 0, 2),
        Written(5_950, 1),
        Held(5_990, 12_000, "Fetch", sender=1),
        *moved_to(6_000, 0, 1, 2),
        Held(12_000, 14_000, "Fetch", sender=1),
        ReadFrom(12_500, 1, 1),
    ),
    looks=(
        Look(11_900, leader=0, isr=(0, 2), logs=((0, 2), (0, 1, 3), (0, 2)), highs=(2, 1, 2)),
        Look(13_000, logs=((0, 2), (0, 1), (0, 2)), highs=(2, 1, 2)),
        Look(20_000, logs=((0, 2), (0, 2), (0, 2)), highs=(2, 2, 2)),
    ),
    gone=(),
)

_S14: Final = attrs.evolve(
    TRIO,
    name="S14",
    title="the end of another log",
    how="1 has led for a moment and has m1 where 0, leading again, writes m2. 1 fetches at the end of its own log: "
    "counted, this would commit m2, which 1 has not, and then 1 is elected.",
    source="KAFKA-13141",
    acts=(
        Written(5_000, 0),
        Held(5_590, 20_000, "Fetch", sender=0),
        Held(5_590, 5_800, "MetadataFetchResponse", receiver=2),
        *moved_to(5_600, 1, 0, 2),
        Written(5_650, 1),
        Held(5_690, 5_850, "MetadataFetchResponse", receiver=1),
        *moved_to(5_700, 0, 1, 2),
        Written(5_720, 0),
        Held(5_840, 20_000, "FetchResponse", sender=0, receiver=1),
        Crashed(6_500, 0, 30_000),
    ),
    looks=(
        Look(6_400, leader=0, isr=(0, 1, 2), logs=((0, 2), (0, 1), (0, 2)), highs=(1, 1, 1)),
        Look(20_000, leader=1),
    ),
    gone=(),
)

HISTORY_OF_LATE_NEWS: Final = (
    _S04,
    attrs.evolve(
        _S04,
        name="S04-before",
        settings=attrs.evolve(_S04.settings, rules=rules_of("2.0")),
        looks=(Look(7_280, leader=0, logs=((0,), (), (0,))), Look(20_000, leader=2, logs=((0,), (), ()))),
        breaks=LOSS,
        gone=(0,),
    ),
    attrs.evolve(
        _S04,
        name="S05",
        title="cutting on fetches that do not say their epoch",
        how="As S04, with logs compared on each fetch, but without the follower's epoch in the fetch: the first "
        "design of KIP-320. The fetch of 2 from a former epoch counts, and the late news makes it cut.",
        source="KIP-320, first design (Kip320FirstTry in hachikuji/kafka-specification)",
        settings=attrs.evolve(
            _S04.settings,
            rules=without(CURRENT, "fetch_epoch_check", "high_watermark_epoch_check", "isr_join_epoch_check"),
        ),
        looks=(Look(7_280, leader=0, logs=((0,), (), (0,))), Look(20_000, leader=2, logs=((0,), (), ()))),
        breaks=LOSS,
        gone=(0,),
    ),
    _S07,
    attrs.evolve(
        _S07,
        name="S07-before",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(COMMON_EPOCH, "epoch_cached_on_election")),
        looks=(
            _S07.looks[0],
            Look(5_390, leader=0, leader_epoch=2, logs=((0,), (0,), ())),
            Look(20_000, leader=2),
        ),
        breaks=LOSS,
        gone=(0,),
    ),
    _S08,
    attrs.evolve(
        _S08,
        name="S08-before",
        settings=attrs.evolve(ALONE, rules=without(COMMON_EPOCH, "epoch_cache_always_trimmed")),
        looks=(_S08.looks[0], Look(9_000, leader=0, logs=((0, 1), (0,)))),
        answers=(Answers("OffsetsForLeaderEpochResponse", count_min=500),),
        breaks=frozenset({"L"}),
    ),
    _S13,
    attrs.evolve(
        _S13,
        name="S13-before",
        settings=attrs.evolve(_S13.settings, rules=without(CURRENT, "truncate_before_high_watermark")),
        looks=(_S13.looks[0], Look(13_000, logs=((0, 2), (0, 1), (0, 2)), highs=(2, 2, 2)), _S13.looks[2]),
        breaks=frozenset({"I17"}),
    ),
    _S14,
    attrs.evolve(
        _S14,
        name="S14-before",
        settings=attrs.evolve(_S14.settings, rules=without(CURRENT, "diverging_fetch_ignored")),
        looks=(Look(6_400, leader=0, isr=(0, 1, 2), logs=((0, 2), (0, 1), (0, 2)), highs=(2, 1, 2)),),
        breaks=LOSS,
        gone=(2,),
    ),
)
"""S04, S05, S07, S08, S13 and S14."""
