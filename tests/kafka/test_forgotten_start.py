"""A log start that was forgotten and leader epochs that were not: what both make of the same directory after a crash.

Kafka has the leader epochs written as soon as what lies before the log start is deleted, by a background task, and the
start itself with the next checkpoint. A broker that dies in between opens the log at its old start, with new epochs.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import pytest

from broker.releases import Release
from tests.golden.log.programs import run
from tests.kafka.jvm import KafkaJvm

pytestmark = pytest.mark.kafka

RELEASES = (Release("4.0"),)

START_MS: Final = 1_700_000_000_003
DELETED_BEFORE: Final = 3


def _appended(leader_epoch: int, *values: str) -> list[dict[str, Any]]:
    """Return one append a value, as leader of an epoch."""
    return [
        {
            "op": "appendAsLeader",
            "batch": {
                "magic": 2,
                "compression": "none",
                "timestampType": "CreateTime",
                "baseOffset": 0,
                "records": [
                    {"timestamp": START_MS, "key": None, "value": base64.b64encode(value.encode()).decode("ascii")}
                ],
            },
            "leaderEpoch": leader_epoch,
            "origin": "CLIENT",
            "advanceHighWatermark": True,
        }
        for value in values
    ]


def _program(*, log_start: int) -> dict[str, Any]:
    """Return a log of two epochs that is cut behind the first, and opened as after a crash with `log_start`."""
    reopened = {"op": "closeAndReopen", "clean": False, "recoveryPoint": 0, "logStart": log_start}
    return {
        "case": f"forgotten-start-{log_start}",
        "kind": "log",
        "config": {"file.delete.delay.ms": 60_000, "segment.bytes": 500},
        "startTimeMs": START_MS,
        "topicId": None,
        "ops": [
            *_appended(0, "m0", "m1"),
            *_appended(1, "m2", "m3", "m4"),
            {"op": "incrementLogStartOffset", "offset": DELETED_BEFORE},
            reopened,
            {"op": "endOffsetForEpoch", "epochs": [0, 1]},
        ],
    }


@pytest.mark.parametrize(("log_start", "first_offset"), [(0, 0), (DELETED_BEFORE, DELETED_BEFORE)])
def test_epochs_that_were_deleted_stay_so_though_the_log_start_falls_back(
    kafka: KafkaJvm, tmp_path: Path, log_start: int, first_offset: int
) -> None:
    """At 0 the checkpoint of the start was not written in time; at 3 it was."""
    case = kafka.program(_program(log_start=log_start), tmp_path)
    *_, cut, _reopened, asked = case["ops"]
    assert (cut["state"]["logStartOffset"], cut["state"]["leaderEpochs"]) == (3, [[1, 3]])
    assert (case["stateAtClose"]["logStartOffset"], case["stateAtClose"]["leaderEpochs"]) == (first_offset, [[1, 3]])
    # A follower of epoch 0, which ended at 2, is told that it ended at 3.
    assert asked["result"]["lookups"][0] == {"epoch": 0, "result": [0, 3]}
    assert run(case, tmp_path) is None
