"""Replay random histories of a controller and random programs of a log, and compare with what Kafka's classes answered.

What it decides: which of the kept histories a run of the campaign replays. They were drawn at random, and Kafka's own
classes answered them once; the answers are kept beside this module, so that no Java is needed.

Constraints: nothing of ours was ever written into the files: `tests.kafka.record` keeps Kafka's answers.

Source: ReplicationControlManager, ClusterControlManager and UnifiedLog of Kafka 4.3.1, as in `tests.kafka`.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from broker.releases import NEWEST
from tests.golden.log.programs import run
from tests.kafka.controllers import draw, replayed

SEED: Final = 24_601
HISTORY_COUNT: Final = 1_000
PROGRAM_COUNT: Final = 80
HISTORIES_A_RUN: Final = 40
PROGRAMS_A_RUN: Final = 4
CONTROLLERS: Final = "kafka_controllers.json.xz"
LOGS: Final = "kafka_logs.json.xz"


def controller_noticed(seed: int) -> str:
    """Return the first answer of our controller that is not Kafka's, "" if all of a run's histories agree."""
    answers = _kept(CONTROLLERS)
    for turn in range(HISTORIES_A_RUN):
        number = (seed * HISTORIES_A_RUN + turn) % len(answers)
        model, places = replayed(draw(SEED, number), NEWEST)
        for place, ours, theirs in zip(places, model.answers, answers[number], strict=False):
            if ours != theirs:
                return f"history {number}, step {place}: {ours!r}, Kafka {theirs!r}"
        if len(model.answers) < len(answers[number]):
            return f"history {number}: {len(model.answers)} of {len(answers[number])} steps are taken"
    return ""


def program_noticed(seed: int) -> str:
    """Return where our log first differs from Kafka's, "" if it nowhere does in a run's programs."""
    cases = _kept(LOGS)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(PROGRAMS_A_RUN):
            case = cases[(seed * PROGRAMS_A_RUN + turn) % len(cases)]
            told = run(case, Path(folder))
            if told is not None:
                return f"{case['case']}: {told}"
    return ""


@cache
def _kept(name: str) -> list[Any]:
    answers: list[Any] = json.loads(lzma.decompress(Path(__file__).with_name(name).read_bytes()))
    return answers
