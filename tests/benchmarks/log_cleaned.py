"""The log that the benchmark of compaction cleans: a million records with a hundred thousand keys.

Records of 100 bytes of word-like text with keys `key-N` drawn at random, in batches of 100 and segments of 16 MiB; each
round cleans a fresh copy, in one pass with a map of 128 MiB. Files are not synced, as in Kafka's own measurement.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import numpy as np

from broker.ids import LeaderEpoch, Offset
from broker.units import MIB, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.codecs.compression import Codec
from log.compaction import clean, log_to_clean
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.record import Record
from log.storage import FileStorage, SyncPolicy
from tests.benchmarks.rounds import Took, measured

DIRECTORY: Final = "topic-0"
RECORD_COUNT: Final = 1_000_000
KEY_COUNT: Final = 100_000
BATCH_RECORD_COUNT: Final = 100
VALUE_SIZE_BYTES: Final = 100
START_MS: Final = 1_700_000_000_000
SEED: Final = 20_241_025
WORDS: Final = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo")
CONFIG: Final = LogConfig.parse({"cleanup.policy": "compact", "segment.bytes": 16 * MIB})


def write_log(folder: Path, codec: Codec) -> None:
    """Write the log that is cleaned; its last segment is empty, so that all records are in rolled ones."""
    chance = np.random.default_rng(SEED)
    folder.mkdir()
    log = open_log(folder)
    keys = chance.integers(0, KEY_COUNT, RECORD_COUNT)
    for start in range(0, RECORD_COUNT, BATCH_RECORD_COUNT):
        numbers = chance.integers(0, len(WORDS), (BATCH_RECORD_COUNT, VALUE_SIZE_BYTES // 4))
        records = [
            Record(
                Offset(index),
                TimeMs(START_MS + start + index),
                b"key-%d" % key,
                " ".join([WORDS[number] for number in row]).encode()[:VALUE_SIZE_BYTES],
            )
            for index, (key, row) in enumerate(
                zip(keys[start : start + BATCH_RECORD_COUNT].tolist(), numbers.tolist(), strict=False)
            )
        ]
        log.append_as_leader(
            build_batch(BatchSpec(codec=codec), records), leader_epoch=LeaderEpoch(0), now_ms=TimeMs(START_MS)
        )
    log.roll(now_ms=TimeMs(START_MS))
    log.close(now_ms=TimeMs(START_MS))


def clean_copy(prepared: Path, copy: Path) -> Took:
    """Clean a copy of the log and return what that took; its rate goes by the records of the log."""
    shutil.copytree(prepared, copy)
    log = open_log(copy)
    log.update_high_watermark(log.log_end_offset)
    target = log_to_clean(log, None, now_ms=TimeMs(START_MS))
    record_count = int(log.log_end_offset)

    def run() -> int:
        clean(target, now_ms=TimeMs(START_MS))
        return record_count

    took = measured(run)
    log.close(now_ms=TimeMs(START_MS))
    shutil.rmtree(copy)
    return took


def open_log(folder: Path) -> PartitionLog:
    """Open the log in `folder`."""
    storage = FileStorage(folder, sync_policy=SyncPolicy.NEVER)
    return PartitionLog.open(storage, DIRECTORY, CONFIG, now_ms=TimeMs(START_MS))
