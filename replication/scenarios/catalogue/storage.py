"""Describe disk faults: failed directories, bit flips, power loss everywhere: S40, S42, S43, S84, S87 to S91.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from log.storage.faults import Fault as LogFault
from log.storage.faults import FaultKind as LogFaultKind
from replication.roles.messages import CreateTopic, DeleteTopic
from replication.rules.switches import CURRENT, without
from replication.scenarios.catalogue.common import PATIENT, fault, reassign_and_elect
from replication.scenarios.disk_faults import BitFlip, DiskFault, FlushEachWrite, WrongTopicId
from replication.scenarios.operations import AskController, Crash, FetchFrom, HoldMessages, LosePower, SendRecord
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedResponses,
    ExpectedState,
    Scenario,
    no_response,
)
from replication.simulation import FaultKind

_TWO_DISKS: Final = attrs.evolve(DEFAULT_ROLE_SETTINGS, directory_count=2)
_QUIET: Final = Scenario(name="", title="", how="", source="", producers=0, consumers=0)

_S91: Final = attrs.evolve(
    _QUIET,
    name="S91",
    title="Power fails everywhere and nothing was flushed",
    how="m0 is in the page cache of all three brokers and acknowledged; power fails before it is on disk. Three "
    "replicas lose records, more than min.insync.replicas tolerates.",
    source="KIP-966; Kafka leaves flushing to the operating system",
    operations=(
        SendRecord(5_000, 0),
        *(LosePower(6_000, broker, 20_000, record_count=1) for broker in range(3)),
    ),
    expected_states=(ExpectedState(5_900, logs=((0,), (0,), (0,))), ExpectedState(50_000, logs=((), (), ()))),
    lost_values=(0,),
    is_strict=False,
)

_S42: Final = attrs.evolve(
    _QUIET,
    name="S42",
    title="Topic is deleted and created again while a broker is down",
    how="Broker 2 is down while its topic, with m0, is deleted and another one of the same name is created, with m1. "
    "It comes back with a log of that name: by the topic id the log is a stray and is deleted before anything is "
    "copied.",
    source="KIP-516, KAFKA-14616",
    operations=(
        SendRecord(5_000, 0),
        Crash(6_000, 2, 30_000),
        AskController(20_000, DeleteTopic(0)),
        AskController(20_500, CreateTopic(1, tuple(BrokerId(broker) for broker in range(3)), "topic-0")),
        SendRecord(22_000, 0, partition=1),
    ),
    expected_states=(
        ExpectedState(29_000, partition=1, leader=0, isr=(0, 1), logs=((1,), (1,), ())),
        ExpectedState(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (1,))),
    ),
    is_strict=False,
)

_S43: Final = attrs.evolve(
    _QUIET,
    name="S43",
    title="Log directory with another topic's id",
    how="The partition.metadata file of partition 0 on broker 2 has the id of another topic. Broker 2 neither changes "
    "the log nor follows: the replica is offline, and no records are mixed.",
    source="KAFKA-14190, KAFKA-12835",
    partitions=2,
    operations=(
        SendRecord(5_000, 0),
        Crash(6_000, 2, 20_000),
        WrongTopicId(10_000, 2, 0, 1),
        SendRecord(18_000, 0),
    ),
    expected_states=(
        ExpectedState(40_000, leader=0, isr=(0, 1), logs=((0, 1), (0, 1), ())),
        ExpectedState(40_000, partition=1, leader=1, isr=(1, 0, 2)),
    ),
    breaks=frozenset({"L"}),
    heal_ms_max=DEFAULT_ROLE_SETTINGS.session_ms,
    lost_values=(),
)

STORAGE: Final = (
    Scenario(
        name="S40",
        title="One of two log directories fails",
        how="The disk of broker 0 that holds partition 0 fails at a write. Partition 0 gets another leader; the "
        "broker goes on with partition 1 and answers KAFKA_STORAGE_ERROR for partition 0.",
        source="KIP-112, KIP-858",
        role_settings=_TWO_DISKS,
        partitions=2,
        operations=(
            DiskFault(5_000, 0, LogFault("disk-0/*.log", LogFaultKind.NO_SPACE), 60_000),
            FetchFrom(20_000, 0, 0),
            FetchFrom(20_000, 0, 0, partition=1),
            Crash(40_000, 0, 41_000),
        ),
        expected_states=(
            ExpectedState(4_900, leader=0, isr=(0, 1, 2)),
            ExpectedState(20_000, leader=1, isr=(1, 2)),
            ExpectedState(20_000, partition=1, leader=1, isr=(1, 2, 0)),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
        expected_responses=(
            ExpectedResponses("ConsumerFetchResponse", ErrorCode.KAFKA_STORAGE_ERROR),
            ExpectedResponses("ProduceResponse", ErrorCode.KAFKA_STORAGE_ERROR),
        ),
    ),
    _S42,
    attrs.evolve(
        _S42,
        name="S42-before",
        title="Topic is deleted and created again, without topic ids",
        how="As S42 with names only: m0 of the old topic passes for a record of the new one.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "topic_id_check")),
        expected_states=(
            _S42.expected_states[0],
            ExpectedState(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (0,))),
        ),
        breaks=frozenset({"I11"}),
    ),
    _S43,
    attrs.evolve(
        _S43,
        name="S43-before",
        title="Log directory with another topic's id, unchecked",
        how="As S43 without the check: broker 2 goes on with the log that has the name.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "topic_id_check")),
        expected_states=(ExpectedState(40_000, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), (0, 1))),),
        breaks=frozenset(),
    ),
    attrs.evolve(
        _QUIET,
        name="S84",
        title="Epoch checkpoint is ahead of the log",
        how="Broker 1 leads a new epoch and writes its start offset to disk; power fails, and the only record of it "
        "is lost. Broker 1 comes back with the log as it was before, and copies the records of the others.",
        source="KAFKA-16541, Kafka LogLoader",
        role_settings=PATIENT,
        operations=(
            SendRecord(5_000, 0),
            HoldMessages(5_590, 30_000, "Fetch", sender=0),
            HoldMessages(5_590, 30_000, "Fetch", sender=2),
            *reassign_and_elect(5_600, 1, 0, 2),
            SendRecord(5_700, 1),
            LosePower(5_800, 1, 30_000, record_count=1),
            SendRecord(20_000, 0),
            HoldMessages(29_900, 40_000, "FetchResponse", receiver=1),
        ),
        expected_states=(
            ExpectedState(5_790, leader=1, leader_epoch=1, logs=((0,), (0, 1), (0,))),
            ExpectedState(35_000, leader=0, leader_epoch=2, logs=((0, 2), (0,), (0, 2))),
            ExpectedState(59_000, leader=0, isr=(0, 2, 1), logs=((0, 2), (0, 2), (0, 2))),
        ),
        lost_values=(),
    ),
    attrs.evolve(
        _QUIET,
        name="S87",
        title="Damaged batch in the middle of the log and an unclean restart",
        how="A bit of m1 flips on the leader's disk, and the leader dies. At the restart its log is truncated at m1; "
        "the broker follows and copies the rest; it was not elected meanwhile.",
        source="Ganesan et al., FAST 2017; Kafka LogLoader",
        operations=(
            *(SendRecord(5_000 + 100 * number, 0) for number in range(3)),
            BitFlip(6_000, 0, 1),
            Crash(6_100, 0, 30_000),
            HoldMessages(29_900, 45_000, "FetchResponse", receiver=0),
        ),
        expected_states=(
            ExpectedState(29_900, leader=1, isr=(1, 2)),
            ExpectedState(40_000, leader=1, isr=(1, 2), logs=((0,), (0, 1, 2), (0, 1, 2))),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0), logs=((0, 1, 2), (0, 1, 2), (0, 1, 2))),
        ),
        lost_values=(),
    ),
    attrs.evolve(
        _QUIET,
        name="S88",
        title="Damaged batch that is not read by the leader",
        how="A bit of m0 flips on the leader's disk, which now holds 256, and the leader does not notice. A follower "
        "with an empty disk cannot copy it: it fetches again and again, other partitions go on, and the leader "
        "stays leader.",
        source="Kafka AbstractFetcherThread.processFetchRequest",
        partitions=2,
        plan=(fault(7_000, FaultKind.WIPE, 2, 15_000),),
        operations=(SendRecord(5_000, 0), SendRecord(5_100, 1, partition=1), BitFlip(6_000, 0, 0)),
        expected_states=(
            ExpectedState(59_000, leader=0, isr=(0, 1), logs=((256,), (0,), ())),
            ExpectedState(59_000, partition=1, leader=1, isr=(1, 0, 2), logs=((1,), (1,), (1,))),
        ),
        breaks=frozenset({"L"}),
        lost_values=(0,),
        heal_ms_max=DEFAULT_ROLE_SETTINGS.session_ms,
    ),
    Scenario(
        name="S89",
        title="One failed flush",
        how="The leader epoch file cannot be flushed when broker 1 becomes leader. The next flush would succeed, but "
        "the records of the first may be lost: the log directory goes offline at once, and with its only "
        "directory the broker ends.",
        source="Rebello et al., ATC 2020; KIP-112",
        producers=0,
        consumers=0,
        operations=(
            SendRecord(5_000, 0),
            DiskFault(9_000, 1, LogFault("disk-0/*leader-epoch-checkpoint", LogFaultKind.FAILED_SYNC), 40_000),
            *reassign_and_elect(10_000, 1, 0, 2),
        ),
        expected_states=(
            ExpectedState(9_900, leader=0, isr=(0, 1, 2)),
            ExpectedState(30_000, leader=0, isr=(0, 2), leader_epoch=2),
            ExpectedState(59_000, isr=(0, 2, 1), logs=((0,), (0,), (0,))),
        ),
        lost_values=(),
    ),
    Scenario(
        name="S90",
        title="Disk is full",
        how="Half a batch fits on the leader's disk, then it is full: the log directory goes offline and the broker "
        "ends. When it starts again, recovery truncates the half batch.",
        source="KIP-112, Kafka LogLoader",
        producers=0,
        consumers=0,
        operations=(
            SendRecord(5_000, 0),
            DiskFault(6_000, 0, LogFault("disk-0/*.log", LogFaultKind.TORN_WRITE), 30_000),
            SendRecord(7_000, 0),
            HoldMessages(29_900, 40_000, "FetchResponse", receiver=0),
        ),
        expected_states=(
            ExpectedState(20_000, leader=1, isr=(1, 2)),
            ExpectedState(35_000, leader=1, isr=(1, 2, 0), logs=((0,), (0,), (0,))),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
        expected_responses=(
            ExpectedResponses("ProduceResponse", ErrorCode.KAFKA_STORAGE_ERROR, 1, 1),
            no_response("ProduceResponse", ErrorCode.UNKNOWN_SERVER_ERROR),
        ),
        lost_values=(),
    ),
    _S91,
    attrs.evolve(
        _S91,
        name="S91-flushed",
        title="Power fails everywhere and each record was flushed",
        how="As S91 with flush.messages=1: each acknowledged record is on disk and stays.",
        operations=(FlushEachWrite(), *_S91.operations),
        expected_states=(_S91.expected_states[0], ExpectedState(50_000, logs=((0,), (0,), (0,)))),
        lost_values=(),
        is_strict=True,
    ),
)
"""S40, S42, S43, S84, S87 to S91."""
