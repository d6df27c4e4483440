"""Replay random histories of a controller and random programs of a log, and compare with what Kafka's classes answered.

They were drawn at random, and Kafka's own classes answered them once; the answers are kept beside this module, so that
no Java is needed. Nothing of ours was ever written into the files: `tests.kafka.record` keeps them.

Source: ReplicationControlManager, ClusterControlManager and UnifiedLog of Kafka 4.3.1, as in `tests.kafka`.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from broker.releases import NEWEST
from tests.golden.log.programs import run
from tests.kafka.controllers import draw, replayed

SEED: Final = 24_601
HISTORY_COUNT: Final = 1_000
PROGRAM_COUNT: Final = 80
PARTS: Final = 10
CONTROLLERS: Final = "kafka_controllers.json.xz"
LOGS: Final = "kafka_logs.json.xz"


@cache
def _kept(name: str) -> list[Any]:
    answers: list[Any] = json.loads(lzma.decompress(Path(__file__).with_name(name).read_bytes()))
    return answers


@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_answers_as_that_of_kafka(part: int) -> None:
    """ReplicationControlManager and PartitionChangeBuilder, 4.3.1."""
    kept = _kept(CONTROLLERS)
    assert len(kept) == HISTORY_COUNT
    for number in range(part, HISTORY_COUNT, PARTS):
        model, places = replayed(draw(SEED, number), NEWEST)
        pairs = zip(places, model.answers, kept[number], strict=False)
        differing = [(number, *each) for each in pairs if each[1] != each[2]]
        assert differing == [], "history, step, our answer, Kafka's"
        assert len(model.answers) >= len(kept[number]), number


def test_a_log_answers_as_that_of_kafka(tmp_path: Path) -> None:
    """UnifiedLog, 4.3.1."""
    cases = _kept(LOGS)
    assert len(cases) == PROGRAM_COUNT
    assert [(case["case"], noticed) for case in cases if (noticed := run(case, tmp_path)) is not None] == []
