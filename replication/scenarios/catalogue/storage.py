"""Scenarios of disks; S18 is of one log, without a cluster."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from broker.clock import ManualClock
from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import MIB, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.batches.in_buffer import batches_in
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import Record
from log.storage import MemoryStorage
from log.storage.faults import Fault as LogFault
from log.storage.faults import FaultKind as LogFaultKind
from replication.roles.messages import CreateTopic, DeleteTopic
from replication.rules.fencing import StopProof, proof_at_stop, proof_while_loading
from replication.rules.switches import CURRENT, Rules, without
from replication.scenarios.operations import (
    AskController,
    Crash,
    DiskFault,
    FetchFrom,
    LosePower,
    SendRecord,
    WrongTopicId,
)
from replication.scenarios.result import ComponentScenario, ExpectedResponses, Fact
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedState,
    Scenario,
)
from replication.simulation.history import LineSink

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

_NOW: Final = TimeMs(1)
_DIRECTORY: Final = "topic-0"
_LOG_FILE: Final = f"{_DIRECTORY}/{0:020d}.log"
_TORN_BYTES: Final = 10


def _batch(value: int) -> bytes:
    return build_batch(BatchSpec(), (Record(Offset(0), _NOW, None, bytes([value])),))


def _torn_log() -> MemoryStorage:
    """Write a log of three records, and tear the end of the third off."""
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(), now_ms=_NOW)
    for value in range(3):
        log.append_as_leader(_batch(value), leader_epoch=LeaderEpoch(0), now_ms=_NOW)
    storage.open(_LOG_FILE).truncate(storage.size_bytes(_LOG_FILE) - _TORN_BYTES)
    return storage


def _stopped_while_recovering(on_line: LineSink, rules: Rules) -> tuple[Fact, ...]:
    """Tear a log's end off, stop the broker during recovery, restart it and append."""
    storage = _torn_log()
    on_line("records 0, 1 and 2 are written; power fails and tears the end of the third off")
    found = proof_while_loading(StopProof(), rules)
    found = proof_at_stop(BrokerEpoch(7), logs_recovered=False, rules=rules)
    is_clean = found.epoch is not None
    on_line(f"the broker starts and is stopped before its logs are recovered; clean shutdown file written: {is_clean}")
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(clean=is_clean), now_ms=_NOW)
    on_line(f"it starts again; the log ends at {log.log_end_offset}, its file at {storage.size_bytes(_LOG_FILE)}")
    written = log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    on_line(f"another record is written at offset {written.first_offset}")
    return (
        Fact("clean shutdown file written:", str(is_clean)),
        Fact("the record is written at", written.first_offset),
        Fact("bytes sent to readers that belong to no whole batch:", _torn_size(log)),
    )


def _torn_size(log: PartitionLog) -> int:
    """Return how many bytes readers receive from the log's start that belong to no whole batch."""
    records = log.read(log.log_start_offset, MIB).records
    return len(records) - sum(batch.size_bytes for batch in batches_in(records))


_OLD: Final = without(CURRENT, "clean_marker_removed_first")
_S18: Final = ComponentScenario(
    name="S18",
    title="Stop during log recovery leaves no clean shutdown file",
    how="A broker loses power, starts, and is stopped before its logs are recovered. No clean shutdown file is "
    "written, and the next start recovers the log.",
    source="KAFKA-10471, KAFKA-15375",
    script=partial(_stopped_while_recovering, rules=CURRENT),
    expected=(
        Fact("clean shutdown file written:", "False"),
        Fact("the record is written at", 2),
        Fact("bytes sent to readers that belong to no whole batch:", 0),
    ),
)

_SINGLE_LOG: Final = (
    _S18,
    ComponentScenario(
        name="S18-before",
        title="Stop during log recovery leaves a clean shutdown file",
        how="As S18, but the stop counts as clean and the next start skips recovery: the torn end stays in the log, "
        "and readers receive it.",
        source=_S18.source,
        script=partial(_stopped_while_recovering, rules=_OLD),
        expected=(
            Fact("clean shutdown file written:", "True"),
            Fact("the record is written at", 2),
            Fact("bytes sent to readers that belong to no whole batch:", 59),
        ),
    ),
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
    attrs.evolve(
        _QUIET,
        name="S42-before",
        title="Topic is deleted and created again, without topic ids",
        how="Broker 2 is down while its topic, with m0, is deleted and another one of the same name is created, with "
        "m1. It comes back with a log of that name. Without topic ids m0 of the old topic passes for a record of "
        "the new one.",
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
            ExpectedState(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (0,))),
        ),
        is_strict=False,
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "topic_id_check")),
        breaks=frozenset({"I11"}),
    ),
    _S43,
    _S91,
    *_SINGLE_LOG,
)
