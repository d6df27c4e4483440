"""Golden truncations: one log cut at every offset in turn, each time from a fresh copy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.clock import ManualClock
from broker.ids import Offset
from broker.units import TimeMs
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from tests.golden.log.cases import Json
from tests.golden.log.inputs import storage_of
from tests.golden.log.settings import config_of
from tests.golden.log.states import file_names, state_json
from tests.golden.runners import compare

DIRECTORY: Final = "topic-0"
OPENED_MS: Final = TimeMs(1_700_001_000_000)
"""About when the logs were written; nothing in these cases goes by the clock."""


def run(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return where the state or the files after one of the cuts first differ."""
    for expected in case["results"]:
        answer = truncated(config_of(case), folder, Offset(expected["offset"]))
        difference = compare(answer, expected, f"offset {expected['offset']}")
        if difference is not None:
            return difference
    return None


def truncated(config: LogConfig, folder: Path, offset: Offset) -> Json:
    """Open a copy of the log, cut it at `offset`, and return what is said of it."""
    clock = ManualClock(OPENED_MS)
    log = PartitionLog.open(storage_of(folder, clock), DIRECTORY, config, now_ms=OPENED_MS)
    is_cut = log.truncate_to(offset, now_ms=OPENED_MS)
    log.run_scheduled(OPENED_MS)
    return {
        "offset": offset,
        "truncated": is_cut,
        "state": state_json(log.state()),
        "files": file_names(log),
        "leaderEpochCheckpoint": log.storage.read(f"{DIRECTORY}/leader-epoch-checkpoint").decode(),
    }
