"""Truncation of followers: bugs that Kafka has fixed."""

from __future__ import annotations

from typing import Final

import attrs

from broker.units import DurationMs
from replication.rules.switches import CURRENT, Truncation, rules_of, without
from replication.scenarios.catalogue.common import (
    ALONE,
    LOSS,
    PAIR,
    THREE_FAILOVERS,
    reassign_and_elect,
)
from replication.scenarios.operations import Crash, HoldMessages, LosePower, SendRecord
from replication.scenarios.result import ExpectedResponses
from replication.scenarios.scenario import ExpectedState

_TO_HIGH_WATERMARK: Final = attrs.evolve(ALONE, rules=attrs.evolve(CURRENT, truncation=Truncation.TO_HIGH_WATERMARK))

_S01: Final = attrs.evolve(
    PAIR,
    name="S01",
    title="Follower asks for the leader's epoch instead of truncating to its high watermark",
    how="Both replicas hold m0 and leader 0 has committed it; follower 1 does not know that yet when a new leader "
    "epoch starts. Follower 1 truncates by leader epoch and keeps m0. The leader dies before 1 fetches again, and "
    "1 leads with m0.",
    source="KIP-101, scenario 1",
    operations=(
        SendRecord(5_000, 0),
        HoldMessages(5_050, 5_200, "MetadataFetchResponse", receiver=1),
        *reassign_and_elect(5_060, 1, 0),
        *reassign_and_elect(5_100, 0, 1),
        HoldMessages(5_150, 30_000, "Fetch", sender=1),
        Crash(5_300, 0, 30_000),
    ),
    expected_states=(
        ExpectedState(5_040, leader=0, isr=(0, 1), logs=((0,), (0,)), high_watermarks=(1, 0)),
        ExpectedState(5_250, leader=0, leader_epoch=2, logs=((0,), (0,))),
        ExpectedState(20_000, leader=1, isr=(1,), logs=((0,), (0,))),
        ExpectedState(44_000, leader=1, logs=((0,), (0,))),
    ),
    lost_values=(),
)


TRUNCATION: Final = (
    _S01,
    attrs.evolve(
        _S01,
        name="S01-before",
        title="Follower truncates to its own high watermark and a committed record is lost",
        how="Both replicas hold m0 and leader 0 has committed it; follower 1 does not know that yet when a new leader "
        "epoch starts. Follower 1 truncates to its own high watermark and removes m0. The leader dies before 1 "
        "fetches again, and 1 leads without m0.",
        settings=_TO_HIGH_WATERMARK,
        expected_states=(
            _S01.expected_states[0],
            ExpectedState(5_250, leader=0, leader_epoch=2, logs=((0,), ())),
            ExpectedState(20_000, leader=1, isr=(1,), logs=((0,), ())),
            ExpectedState(44_000, leader=1, logs=((), ())),
        ),
        breaks=LOSS,
        lost_values=(0,),
    ),
    attrs.evolve(
        PAIR,
        name="S02-before",
        title="Logs differ after both brokers lose power and stay different",
        how="Broker 0 has m0 and m1 and has committed both; broker 1 loses m1 with its power. Broker 1 is back first, "
        "leads and writes m2 at the offset of m1. Broker 0 comes back, trusts its own high watermark and keeps m1 "
        "where the leader has m2. With leader epochs it truncates m1; without ELR Kafka promises no more.",
        source="KIP-101, scenario 2; KAFKA-3919",
        settings=attrs.evolve(_TO_HIGH_WATERMARK, rules=without(_TO_HIGH_WATERMARK.rules, "elr")),
        operations=(
            SendRecord(5_000, 0),
            SendRecord(5_050, 0),
            LosePower(12_000, 0, 40_000),
            LosePower(12_000, 1, 25_000, record_count=1),
            SendRecord(35_000, 1),
        ),
        expected_states=(
            ExpectedState(11_000, leader=0, isr=(0, 1), logs=((0, 1), (0, 1)), high_watermarks=(2, 2)),
            ExpectedState(24_000, leader=-1, isr=(1,)),
            ExpectedState(39_000, leader=1, isr=(1,), logs=((0, 1), (0, 2))),
            ExpectedState(59_000, leader=1, isr=(1, 0), logs=((0, 1), (0, 2))),
        ),
        breaks=frozenset({"I5", "I6", "I7", "I22"}),
        lost_values=(1,),
        duration_ms=DurationMs(60_000),
        is_strict=False,
    ),
    attrs.evolve(
        PAIR,
        name="S03-before",
        title="Leadership moves away and back, and the committed record is truncated",
        how="Leadership moves from 0 to 1 and back to 0 within one fetch. Broker 1 has the committed m0, has led for "
        "a moment and has written m1. Under the rules of 0.11 broker 0 does not know the epoch that 1 asks for, "
        "and 1 truncates to its high watermark, below m0.",
        source="KIP-279, KAFKA-6361",
        operations=(
            SendRecord(5_000, 0),
            HoldMessages(5_050, 5_250, "MetadataFetchResponse", receiver=0),
            *reassign_and_elect(5_060, 1, 0),
            SendRecord(5_080, 1),
            *reassign_and_elect(5_100, 0, 1),
            HoldMessages(5_115, 30_000, "Fetch", sender=1),
            Crash(7_000, 0, 30_000),
        ),
        expected_states=(
            ExpectedState(5_090, leader=1, leader_epoch=1, logs=((0,), (0, 1)), high_watermarks=(1, 0)),
            ExpectedState(6_000, logs=((0,), ())),
            ExpectedState(20_000, leader=1, logs=((0,), ())),
        ),
        lost_values=(0,),
        settings=attrs.evolve(ALONE, rules=rules_of("0.11")),
        breaks=LOSS,
    ),
    attrs.evolve(
        PAIR,
        name="S03b-before",
        title="Three fast failovers with one OffsetsForLeaderEpoch, as before KIP-279",
        how="Broker 0 has m0 m2 and broker 1 has m0 m1 m3, each from epochs unknown to the other. Broker 1 asks once, "
        "truncates too little, and the logs stay different; by KIP-279 a second round finds their common point.",
        source="KIP-279, scenario 3; KAFKA-10554",
        operations=THREE_FAILOVERS,
        expected_states=(
            ExpectedState(5_590, leader=0, leader_epoch=0, logs=((0,), (0,)), high_watermarks=(1, 1)),
            ExpectedState(5_990, leader=1, leader_epoch=3, logs=((0, 2), (0, 1, 3))),
            ExpectedState(10_000, leader=0, leader_epoch=4, logs=((0, 2), (0, 1))),
        ),
        expected_responses=(ExpectedResponses("OffsetsForLeaderEpochResponse", count_min=1, count_max=1),),
        lost_values=(),
        settings=attrs.evolve(ALONE, rules=attrs.evolve(CURRENT, truncation=Truncation.BY_LEADER_EPOCH)),
        breaks=frozenset({"I4", "I5", "I29"}),
    ),
)
