"""Scenarios of disks in a cluster: directories that fail, bits that turn over, power that fails everywhere.

It decides nothing; it is data. S40, S84, S87 to S91.

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
from replication.scenarios.acts import Crashed, Held, Ordered, PowerCut, ReadFrom, Written
from replication.scenarios.catalogue.parts import PATIENT, fault, moved_to
from replication.scenarios.disks import BitFlip, DiskFault, FlushEachWrite, WrongTopicId
from replication.scenarios.scenario import DEFAULT_SETTINGS, DEFAULT_TERMS, Answers, Look, Scenario, never
from replication.simulation import FaultKind

_TWO_DISKS: Final = attrs.evolve(DEFAULT_SETTINGS, directory_count=2)
_QUIET: Final = Scenario(name="", title="", how="", source="", producers=0, consumers=0)

_S91: Final = attrs.evolve(
    _QUIET,
    name="S91",
    title="power fails everywhere, and nothing was flushed",
    how="m0 is in the page cache of all three brokers and acknowledged; power fails before any system has written "
    "it to disk. Three lossy restarts are more than min.insync.replicas is good for.",
    source="KIP-966; Kafka leaves flushing to the operating system",
    acts=(
        Written(5_000, 0),
        *(PowerCut(6_000, broker, 20_000, record_count=1) for broker in range(3)),
    ),
    looks=(Look(5_900, logs=((0,), (0,), (0,))), Look(50_000, logs=((), (), ()))),
    gone=(0,),
    is_strict=False,
)

_S42: Final = attrs.evolve(
    _QUIET,
    name="S42",
    title="a topic deleted and made anew while a broker is down",
    how="2 is down while its topic, with m0, is deleted and another one of the same name is made, with m1. It comes "
    "back with a log of that name: by the topic's id it is a stray, and removed before anything is copied.",
    source="KIP-516, KAFKA-14616",
    acts=(
        Written(5_000, 0),
        Crashed(6_000, 2, 30_000),
        Ordered(20_000, DeleteTopic(0)),
        Ordered(20_500, CreateTopic(1, tuple(BrokerId(broker) for broker in range(3)), "topic-0")),
        Written(22_000, 0, partition=1),
    ),
    looks=(
        Look(29_000, partition=1, leader=0, isr=(0, 1), logs=((1,), (1,), ())),
        Look(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (1,))),
    ),
    is_strict=False,
)

_S43: Final = attrs.evolve(
    _QUIET,
    name="S43",
    title="a log of another topic's id",
    how="The file beside the log of partition 0 on broker 2 says that it is of another topic. 2 does not touch it, "
    "nor follow: the replica is unavailable, and nothing is mixed.",
    source="KAFKA-14190, KAFKA-12835",
    partitions=2,
    acts=(
        Written(5_000, 0),
        Crashed(6_000, 2, 20_000),
        WrongTopicId(10_000, 2, 0, 1),
        Written(18_000, 0),
    ),
    looks=(
        Look(40_000, leader=0, isr=(0, 1), logs=((0, 1), (0, 1), ())),
        Look(40_000, partition=1, leader=1, isr=(1, 0, 2)),
    ),
    breaks=frozenset({"L"}),
    heal_ms_max=DEFAULT_SETTINGS.session_ms,
    gone=(),
)

STORAGE: Final = (
    Scenario(
        name="S40",
        title="one of two disks fails",
        how="The disk of broker 0 that holds partition 0 fails at a write. Partition 0 gets another leader, the "
        "broker stays and goes on with partition 1; asked for partition 0 it says that its storage failed.",
        source="KIP-112, KIP-858",
        role_settings=_TWO_DISKS,
        partitions=2,
        acts=(
            DiskFault(5_000, 0, LogFault("disk-0/*.log", LogFaultKind.NO_SPACE), 60_000),
            ReadFrom(20_000, 0, 0),
            ReadFrom(20_000, 0, 0, partition=1),
            Crashed(40_000, 0, 41_000),
        ),
        looks=(
            Look(4_900, leader=0, isr=(0, 1, 2)),
            Look(20_000, leader=1, isr=(1, 2)),
            Look(20_000, partition=1, leader=1, isr=(1, 2, 0)),
            Look(59_000, leader=1, isr=(1, 2, 0)),
        ),
        answers=(
            Answers("ConsumerFetchResponse", ErrorCode.KAFKA_STORAGE_ERROR),
            Answers("ProduceResponse", ErrorCode.KAFKA_STORAGE_ERROR),
        ),
    ),
    _S42,
    attrs.evolve(
        _S42,
        name="S42-before",
        how="As S42, with nothing but the name to go by: m0 of the old topic passes for what the new one has there.",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "topic_id_check")),
        looks=(
            _S42.looks[0],
            Look(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (0,))),
        ),
        breaks=frozenset({"I11"}),
    ),
    _S43,
    attrs.evolve(
        _S43,
        name="S43-before",
        how="As S43, with nobody to look: 2 goes on with the log that it finds under the name.",
        settings=attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "topic_id_check")),
        looks=(Look(40_000, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), (0, 1))),),
        breaks=frozenset(),
    ),
    attrs.evolve(
        _QUIET,
        name="S84",
        title="epochs on disk that the log has lost",
        how="1 leads a new epoch and notes on disk where it starts; power fails, and the only record of it is gone. "
        "1 comes back with the log as it was before, and copies what the others have written.",
        source="KAFKA-16541, Kafka LogLoader",
        role_settings=PATIENT,
        acts=(
            Written(5_000, 0),
            Held(5_590, 30_000, "Fetch", sender=0),
            Held(5_590, 30_000, "Fetch", sender=2),
            *moved_to(5_600, 1, 0, 2),
            Written(5_700, 1),
            PowerCut(5_800, 1, 30_000, record_count=1),
            Written(20_000, 0),
            Held(29_900, 40_000, "FetchResponse", receiver=1),
        ),
        looks=(
            Look(5_790, leader=1, leader_epoch=1, logs=((0,), (0, 1), (0,))),
            Look(35_000, leader=0, leader_epoch=2, logs=((0, 2), (0,), (0, 2))),
            Look(59_000, leader=0, isr=(0, 2, 1), logs=((0, 2), (0, 2), (0, 2))),
        ),
        gone=(),
    ),
    attrs.evolve(
        _QUIET,
        name="S87",
        title="a damaged batch in the middle, and an unclean restart",
        how="A bit of m1 turns over on the leader's disk, and the leader dies. Its log is cut at m1 as it starts, "
        "it follows and copies the rest; nobody has elected it meanwhile.",
        source="Ganesan et al., FAST 2017; Kafka LogLoader",
        acts=(
            *(Written(5_000 + 100 * number, 0) for number in range(3)),
            BitFlip(6_000, 0, 1),
            Crashed(6_100, 0, 30_000),
            Held(29_900, 45_000, "FetchResponse", receiver=0),
        ),
        looks=(
            Look(29_900, leader=1, isr=(1, 2)),
            Look(40_000, leader=1, isr=(1, 2), logs=((0,), (0, 1, 2), (0, 1, 2))),
            Look(59_000, leader=1, isr=(1, 2, 0), logs=((0, 1, 2), (0, 1, 2), (0, 1, 2))),
        ),
        gone=(),
    ),
    attrs.evolve(
        _QUIET,
        name="S88",
        title="a damaged batch that nobody looks at",
        how="A bit of m0 turns over on the leader's disk, which now holds 256; nobody looks. A follower that lost "
        "its disk cannot get past it: it asks again and again, other partitions go on, and the leader stays leader.",
        source="Kafka AbstractFetcherThread.processFetchRequest",
        partitions=2,
        plan=(fault(7_000, FaultKind.WIPE, 2, 15_000),),
        acts=(Written(5_000, 0), Written(5_100, 1, partition=1), BitFlip(6_000, 0, 0)),
        looks=(
            Look(59_000, leader=0, isr=(0, 1), logs=((256,), (0,), ())),
            Look(59_000, partition=1, leader=1, isr=(1, 0, 2), logs=((1,), (1,), (1,))),
        ),
        breaks=frozenset({"L"}),
        gone=(0,),
        heal_ms_max=DEFAULT_SETTINGS.session_ms,
    ),
    Scenario(
        name="S89",
        title="a flush that fails once",
        how="The file of epochs cannot be flushed as broker 1 begins to lead. The next flush would succeed, but "
        "what the first was to save may be gone: the disk is given up at once, and with its only disk the broker "
        "ends.",
        source="Rebello et al., ATC 2020; KIP-112",
        producers=0,
        consumers=0,
        acts=(
            Written(5_000, 0),
            DiskFault(9_000, 1, LogFault("disk-0/*leader-epoch-checkpoint", LogFaultKind.FAILED_SYNC), 40_000),
            *moved_to(10_000, 1, 0, 2),
        ),
        looks=(
            Look(9_900, leader=0, isr=(0, 1, 2)),
            Look(30_000, leader=0, isr=(0, 2), leader_epoch=2),
            Look(59_000, isr=(0, 2, 1), logs=((0,), (0,), (0,))),
        ),
        gone=(),
    ),
    Scenario(
        name="S90",
        title="a disk that is full",
        how="Half a batch fits on the leader's disk, then it is full: the disk is given up and the broker ends. "
        "When it starts again, the half batch is cut off.",
        source="KIP-112, Kafka LogLoader",
        producers=0,
        consumers=0,
        acts=(
            Written(5_000, 0),
            DiskFault(6_000, 0, LogFault("disk-0/*.log", LogFaultKind.TORN_WRITE), 30_000),
            Written(7_000, 0),
            Held(29_900, 40_000, "FetchResponse", receiver=0),
        ),
        looks=(
            Look(20_000, leader=1, isr=(1, 2)),
            Look(35_000, leader=1, isr=(1, 2, 0), logs=((0,), (0,), (0,))),
            Look(59_000, leader=1, isr=(1, 2, 0)),
        ),
        answers=(
            Answers("ProduceResponse", ErrorCode.KAFKA_STORAGE_ERROR, 1, 1),
            never("ProduceResponse", ErrorCode.UNKNOWN_SERVER_ERROR),
        ),
        gone=(),
    ),
    _S91,
    attrs.evolve(
        _S91,
        name="S91-flushed",
        title="power fails everywhere, and each record was flushed",
        how="As S91 with flush.messages=1: what was acknowledged is on disk, and there to stay.",
        acts=(FlushEachWrite(), *_S91.acts),
        looks=(_S91.looks[0], Look(50_000, logs=((0,), (0,), (0,)))),
        gone=(),
        is_strict=True,
    ),
)
"""S40, S84, S87 to S91."""
