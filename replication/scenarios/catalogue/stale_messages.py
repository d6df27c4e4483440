"""Kafka's bugs of truncation by stale messages, without and with their fixes: S04, S07, S08, S13, S14."""

from __future__ import annotations

from typing import Final

import attrs

from broker.units import DurationMs
from replication.rules.switches import CURRENT, rules_of, without
from replication.scenarios.catalogue.common import (
    ALONE,
    COMMON_EPOCH,
    LOSS,
    PAIR,
    QUICK_LAG,
    THREE_FAILOVERS,
    TRIO,
    reassign_and_elect,
)
from replication.scenarios.operations import Crash, FetchFrom, HoldMessages, SendRecord
from replication.scenarios.scenario import DEFAULT_PARTITION_SETTINGS, ExpectedResponses, ExpectedState

_S04: Final = attrs.evolve(
    TRIO,
    name="S04",
    title="Follower receives the metadata of an old epoch late",
    how="Brokers 0, 1 and 0 again become leaders. Broker 1 does not know that its epoch has ended and leads an empty "
    "log. Brokers 0 and 2 commit m0 in the last epoch; then 2 learns, late, of the epoch of 1 and asks 1 where to "
    "truncate.",
    source="KIP-320",
    settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, lag_ms_max=QUICK_LAG),
    operations=(
        reassign_and_elect(4_500, 1, 0, 2)[0],
        HoldMessages(4_990, 7_300, "MetadataFetchResponse", receiver=2),
        reassign_and_elect(5_000, 1, 0, 2)[1],
        HoldMessages(5_100, 25_000, "MetadataFetchResponse", receiver=1),
        *reassign_and_elect(5_150, 0, 1, 2),
        SendRecord(5_300, 0),
        HoldMessages(6_060, 25_000, "FetchResponse", sender=0, receiver=2),
        HoldMessages(7_290, 19_000, "MetadataFetchResponse", receiver=2),
        Crash(7_600, 0, 30_000),
    ),
    expected_states=(ExpectedState(5_090, leader=1, leader_epoch=1), ExpectedState(5_290, leader=0, leader_epoch=2)),
    lost_values=(),
)

_S07: Final = attrs.evolve(
    TRIO,
    name="S07",
    title="New leader that has written nothing knows its epoch",
    how="Broker 1 leads epoch 1 and gives 2 a record that is not committed; then 0 leads epoch 2 and writes nothing. "
    "Broker 2 asks 0 where epoch 1 ends; 0 has noted the start of epoch 2 and answers.",
    source="KAFKA-7415",
    settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=COMMON_EPOCH),
    operations=(
        SendRecord(5_000, 0),
        HoldMessages(5_055, 30_000, "Fetch", sender=0),
        HoldMessages(5_055, 30_000, "OffsetsForLeaderEpoch", sender=0),
        *reassign_and_elect(5_060, 1, 0, 2),
        SendRecord(5_100, 1),
        *reassign_and_elect(5_200, 0, 2, 1),
        HoldMessages(5_220, 30_000, "Fetch", sender=2),
        Crash(6_600, 0, 35_000),
    ),
    expected_states=(
        ExpectedState(5_190, leader=1, logs=((0,), (0, 1), (0, 1))),
        ExpectedState(6_590, leader=0, leader_epoch=2, logs=((0,), (0,), (0,))),
        ExpectedState(20_000, leader=2, isr=(1, 2), logs=((0,), (0,), (0,))),
    ),
    lost_values=(),
)

_S08: Final = attrs.evolve(
    PAIR,
    name="S08",
    title="Follower with an epoch beyond its log truncates once",
    how="Broker 1 has led an epoch without records and lacks a record of the epoch before. It is told to truncate "
    "where its log ends, removes the epoch from its cache and fetches.",
    source="KAFKA-10706",
    settings=attrs.evolve(ALONE, rules=COMMON_EPOCH),
    operations=(
        SendRecord(5_000, 0),
        HoldMessages(5_590, 6_500, "Fetch", sender=1),
        HoldMessages(5_590, 6_500, "OffsetsForLeaderEpoch", sender=1, count_max=1),
        *reassign_and_elect(5_600, 1, 0),
        *reassign_and_elect(5_620, 0, 1),
        SendRecord(5_700, 0),
        HoldMessages(5_790, 20_000, "Fetch", sender=0),
        HoldMessages(5_790, 20_000, "OffsetsForLeaderEpoch", sender=0),
        *reassign_and_elect(5_800, 1, 0),
        *reassign_and_elect(5_900, 0, 1),
    ),
    expected_states=(
        ExpectedState(5_890, leader=1, logs=((0, 1), (0,))),
        ExpectedState(9_000, leader=0, logs=((0, 1), (0, 1))),
    ),
    expected_responses=(ExpectedResponses("OffsetsForLeaderEpochResponse", count_min=1, count_max=10),),
    lost_values=(),
    duration_ms=DurationMs(10_000),
    heal_ms_max=DurationMs(2_000),
)

_S13: Final = attrs.evolve(
    TRIO,
    name="S13",
    title="Diverging follower serves only records that it shares with the leader",
    how="As S03b with a third replica, with which 0 commits m2 where 1 has m1. A consumer asks 1 for that offset "
    "between its two truncations: 1 lowers its high watermark with its log and does not serve m1.",
    source="KAFKA-14704",
    settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, lag_ms_max=QUICK_LAG),
    operations=(
        *(THREE_FAILOVERS[:4]),
        *reassign_and_elect(5_600, 1, 0, 2),
        SendRecord(5_650, 1),
        HoldMessages(5_690, 5_900, "MetadataFetchResponse", receiver=1),
        *reassign_and_elect(5_700, 0, 1, 2),
        SendRecord(5_750, 0),
        *reassign_and_elect(5_800, 1, 0, 2),
        SendRecord(5_950, 1),
        HoldMessages(5_990, 12_000, "Fetch", sender=1),
        *reassign_and_elect(6_000, 0, 1, 2),
        HoldMessages(12_000, 14_000, "Fetch", sender=1),
        FetchFrom(12_500, 1, 1),
    ),
    expected_states=(
        ExpectedState(11_900, leader=0, isr=(0, 2), logs=((0, 2), (0, 1, 3), (0, 2)), high_watermarks=(2, 1, 2)),
        ExpectedState(13_000, logs=((0, 2), (0, 1), (0, 2)), high_watermarks=(2, 1, 2)),
        ExpectedState(20_000, logs=((0, 2), (0, 2), (0, 2)), high_watermarks=(2, 2, 2)),
    ),
    lost_values=(),
)

_S14: Final = attrs.evolve(
    TRIO,
    name="S14",
    title="Leader ignores the fetch offset of a diverging follower",
    how="Broker 1 has led for a moment and has m1 where 0, leading again, writes m2. Broker 1 fetches at the end of "
    "its own log; leader 0 answers with the diverging epoch and does not count the fetch.",
    source="KAFKA-13141",
    operations=(
        SendRecord(5_000, 0),
        HoldMessages(5_590, 20_000, "Fetch", sender=0),
        HoldMessages(5_590, 5_800, "MetadataFetchResponse", receiver=2),
        *reassign_and_elect(5_600, 1, 0, 2),
        SendRecord(5_650, 1),
        HoldMessages(5_690, 5_850, "MetadataFetchResponse", receiver=1),
        *reassign_and_elect(5_700, 0, 1, 2),
        SendRecord(5_720, 0),
        HoldMessages(5_840, 20_000, "FetchResponse", sender=0, receiver=1),
        Crash(6_500, 0, 30_000),
    ),
    expected_states=(
        ExpectedState(6_400, leader=0, isr=(0, 1, 2), logs=((0, 2), (0, 1), (0, 2)), high_watermarks=(1, 1, 1)),
        ExpectedState(20_000, leader=1),
    ),
    lost_values=(),
)

STALE_MESSAGES: Final = (
    _S04,
    attrs.evolve(
        _S04,
        name="S04-before",
        title="Follower receives the metadata of an old epoch late and truncates a committed record",
        how="As S04 under the rules of 2.0: requests carry no current leader epoch, so 1 answers as a leader and 2 "
        "truncates m0.",
        settings=attrs.evolve(_S04.settings, rules=rules_of("2.0")),
        expected_states=(
            ExpectedState(7_280, leader=0, logs=((0,), (), (0,))),
            ExpectedState(20_000, leader=2, logs=((0,), (), ())),
        ),
        breaks=LOSS,
        lost_values=(0,),
    ),
    _S07,
    attrs.evolve(
        _S07,
        name="S07-before",
        title="New leader that has written nothing cannot answer and a committed record is lost",
        how="As S07, but 0 notes an epoch with its first record only: it cannot answer, 2 truncates to its high "
        "watermark and loses m0.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(COMMON_EPOCH, "epoch_cached_on_election")),
        expected_states=(
            _S07.expected_states[0],
            ExpectedState(6_590, leader=0, leader_epoch=2, logs=((0,), (0,), ())),
            ExpectedState(20_000, leader=2),
        ),
        breaks=LOSS,
        lost_values=(0,),
    ),
    _S08,
    attrs.evolve(
        _S08,
        name="S08-before",
        title="Follower with an epoch beyond its log truncates for ever",
        how="As S08, but the epoch stays in the cache: 1 sends the same OffsetsForLeaderEpoch again and again.",
        settings=attrs.evolve(ALONE, rules=without(COMMON_EPOCH, "epoch_cache_always_trimmed")),
        expected_states=(_S08.expected_states[0], ExpectedState(9_000, leader=0, logs=((0, 1), (0,)))),
        expected_responses=(ExpectedResponses("OffsetsForLeaderEpochResponse", count_min=500),),
        breaks=frozenset({"L"}),
    ),
    _S13,
    attrs.evolve(
        _S13,
        name="S13-before",
        title="Diverging follower serves a record that was never committed",
        how="As S13, but the high watermark of 1 is set before it has truncated: a consumer reads m1.",
        settings=attrs.evolve(_S13.settings, rules=without(CURRENT, "truncate_before_high_watermark")),
        expected_states=(
            _S13.expected_states[0],
            ExpectedState(13_000, logs=((0, 2), (0, 1), (0, 2)), high_watermarks=(2, 2, 2)),
            _S13.expected_states[2],
        ),
        breaks=frozenset({"I17"}),
    ),
    _S14,
    attrs.evolve(
        _S14,
        name="S14-before",
        title="Leader counts the fetch of a diverging follower and a committed record is lost",
        how="As S14, but 0 counts the fetch and commits m2, which 1 does not have; then 1 is elected.",
        settings=attrs.evolve(_S14.settings, rules=without(CURRENT, "diverging_fetch_ignored")),
        expected_states=(
            ExpectedState(6_400, leader=0, isr=(0, 1, 2), logs=((0, 2), (0, 1), (0, 2)), high_watermarks=(2, 1, 2)),
        ),
        breaks=LOSS | {"I19", "I29"},
        lost_values=(2,),
    ),
)
