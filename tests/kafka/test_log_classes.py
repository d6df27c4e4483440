"""Kafka's UnifiedLog on directories that we wrote, and random programs run by both."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from broker.ids import Offset
from broker.releases import Release
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.segments.file_names import LOG
from log.storage import FileStorage
from tests.golden.log.programs import run
from tests.golden.log.states import state_json
from tests.kafka.jvm import KafkaJvm
from tests.kafka.programs import random_program
from tests.log.samples import CONFIG, DIRECTORY, SAMPLES, SETTINGS, START_MS, write_sample

pytestmark = pytest.mark.kafka

PROGRAM_COUNT: Final = 200
SEED: Final = 20250909
ENDED: Final = frozenset({32, 37, 49, 54, 56, 74, 101, 110, 143})
"""The programs whose log neither can open again: an index of 24 or 48 bytes has no room for what recovery adds."""
OPERATIONS: Final = frozenset(
    {
        "appendAsLeader",
        "appendAsFollower",
        "closeAndReopen",
        "clean",
        "deleteOldSegments",
        "incrementLogStartOffset",
        "truncateTo",
        "roll",
    }
)


def opened_by_us(root: Path, release: Release, *, clean: bool, recovery_point: int) -> dict[str, Any]:
    last_shutdown = LastShutdown(clean=clean, recovery_point=Offset(recovery_point))
    config = attrs.evolve(CONFIG, release=release)
    log = PartitionLog.open(FileStorage(root), DIRECTORY, config, last_shutdown, now_ms=START_MS)
    state: dict[str, Any] = state_json(log.state())
    log.close(now_ms=START_MS)
    return state


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_kafka_opens_what_we_wrote_to_the_state_that_we_open_it_to(
    kafka: KafkaJvm, tmp_path: Path, sample: str, clean: bool
) -> None:
    log = write_sample(sample, tmp_path / "ours")
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    point = int(log.log_end_offset) if clean else 0
    theirs = kafka.opened(tmp_path / "theirs" / DIRECTORY, SETTINGS, clean=clean, recoveryPoint=point, nowMs=START_MS)
    assert theirs["logEndOffset"] == log.log_end_offset
    assert theirs == opened_by_us(tmp_path / "ours", kafka.release, clean=clean, recovery_point=point)


@pytest.mark.parametrize("cut_bytes", [1, 30, 61, 75])
def test_both_recover_a_torn_tail_to_the_same_end(kafka: KafkaJvm, tmp_path: Path, cut_bytes: int) -> None:
    write_sample("transactions", tmp_path / "ours")
    last = max(path for path in (tmp_path / "ours" / DIRECTORY).glob(f"*{LOG}") if path.stat().st_size)
    last.write_bytes(last.read_bytes()[:-cut_bytes])
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    theirs = kafka.opened(tmp_path / "theirs" / DIRECTORY, SETTINGS, nowMs=START_MS)
    assert theirs == opened_by_us(tmp_path / "ours", kafka.release, clean=False, recovery_point=0)


def test_random_programs_leave_the_same_states_and_the_same_bytes(kafka: KafkaJvm, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    ended = set()
    for number in range(PROGRAM_COUNT):
        folder = tmp_path / str(number)
        case = kafka.program(random_program(SEED, number), folder)
        difference = run(case, folder)
        assert difference is None, f"program {number} of seed {SEED}: {difference}"
        if "stateAtClose" not in case:
            assert case["ops"][-1]["result"] == {"exception": "java.lang.IllegalArgumentException"}
            ended.add(number)
        seen.update(operation["op"] for operation in case["ops"] if "exception" not in operation["result"])
        shutil.rmtree(folder, ignore_errors=True)
    assert set(seen) >= OPERATIONS, seen
    assert ended == ENDED


def test_a_program_with_another_result_is_reported(kafka: KafkaJvm, tmp_path: Path) -> None:
    case = kafka.program(random_program(SEED, 1), tmp_path)
    case["stateAtClose"]["logEndOffset"] += 1
    assert "logEndOffset" in str(run(case, tmp_path))
