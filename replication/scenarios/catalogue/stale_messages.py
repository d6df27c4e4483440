"""Truncation by stale messages: bugs that Kafka has fixed."""

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
from replication.scenarios.result import ExpectedResponses
from replication.scenarios.scenario import DEFAULT_PARTITION_SETTINGS, ExpectedState

STALE_MESSAGES: Final = (
    attrs.evolve(
        TRIO,
        name="S04-before",
        title="Follower receives the metadata of an old epoch late and truncates a committed record",
        how="Brokers 0, 1 and 0 again become leaders. Broker 1 does not know that its epoch has ended and leads an "
        "empty log. Brokers 0 and 2 commit m0 in the last epoch; then 2 learns, late, of the epoch of 1 and asks "
        "1 where to truncate. Under the rules of 2.0 requests carry no current leader epoch: 1 answers as a "
        "leader and 2 truncates m0.",
        source="KIP-320",
        settings=attrs.evolve(attrs.evolve(DEFAULT_PARTITION_SETTINGS, lag_ms_max=QUICK_LAG), rules=rules_of("2.0")),
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
        expected_states=(
            ExpectedState(7_280, leader=0, logs=((0,), (), (0,))),
            ExpectedState(20_000, leader=2, logs=((0,), (), ())),
        ),
        lost_values=(0,),
        breaks=LOSS,
    ),
    attrs.evolve(
        TRIO,
        name="S07-before",
        title="New leader that has written nothing cannot answer and a committed record is lost",
        how="Broker 1 leads epoch 1 and gives 2 a record that is not committed; then 0 leads epoch 2 and writes "
        "nothing. Broker 2 asks 0 where epoch 1 ends. As 0 notes an epoch with its first record only, it cannot "
        "answer: 2 truncates to its high watermark and loses m0.",
        source="KAFKA-7415",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(COMMON_EPOCH, "epoch_cached_on_election")),
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
            ExpectedState(6_590, leader=0, leader_epoch=2, logs=((0,), (0,), ())),
            ExpectedState(20_000, leader=2),
        ),
        lost_values=(0,),
        breaks=LOSS,
    ),
    attrs.evolve(
        PAIR,
        name="S08-before",
        title="Follower with an epoch beyond its log truncates for ever",
        how="Broker 1 has led an epoch without records and lacks a record of the epoch before. It is told to truncate "
        "where its log ends, which leaves the epoch in its cache: it sends the same OffsetsForLeaderEpoch again "
        "and again.",
        source="KAFKA-10706",
        settings=attrs.evolve(ALONE, rules=without(COMMON_EPOCH, "epoch_cache_always_trimmed")),
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
            ExpectedState(9_000, leader=0, logs=((0, 1), (0,))),
        ),
        expected_responses=(ExpectedResponses("OffsetsForLeaderEpochResponse", count_min=500),),
        lost_values=(),
        duration_ms=DurationMs(10_000),
        heal_ms_max=DurationMs(2_000),
        breaks=frozenset({"L"}),
    ),
    attrs.evolve(
        TRIO,
        name="S13-before",
        title="Diverging follower serves a record that was never committed",
        how="As S03b-before with a third replica, with which 0 commits m2 where 1 has m1. A consumer asks 1 for that "
        "offset between its two truncations. The high watermark of 1 is set before it has truncated: the consumer "
        "reads m1.",
        source="KAFKA-14704",
        settings=attrs.evolve(
            attrs.evolve(DEFAULT_PARTITION_SETTINGS, lag_ms_max=QUICK_LAG),
            rules=without(CURRENT, "truncate_before_high_watermark"),
        ),
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
            ExpectedState(13_000, logs=((0, 2), (0, 1), (0, 2)), high_watermarks=(2, 2, 2)),
            ExpectedState(20_000, logs=((0, 2), (0, 2), (0, 2)), high_watermarks=(2, 2, 2)),
        ),
        lost_values=(),
        breaks=frozenset({"I17"}),
    ),
    attrs.evolve(
        TRIO,
        name="S14-before",
        title="Leader counts the fetch of a diverging follower and a committed record is lost",
        how="Broker 1 has led for a moment and has m1 where 0, leading again, writes m2. Broker 1 fetches at the end "
        "of its own log. Leader 0 answers with the diverging epoch and yet counts the fetch: it commits m2, which "
        "1 does not have; then 1 is elected.",
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
            ExpectedState(6_400, leader=0, isr=(0, 1, 2), logs=((0, 2), (0, 1), (0, 2)), high_watermarks=(2, 1, 2)),
        ),
        lost_values=(2,),
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "diverging_fetch_ignored")),
        breaks=LOSS | {"I19", "I29"},
    ),
)
