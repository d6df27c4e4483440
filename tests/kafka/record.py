"""`python -m tests.kafka.record FOLDER`: keep what Kafka answers to random histories and log programs.

What it decides: how many, of which seed. What is kept is Kafka's answers alone: the histories and programs are drawn
again from the seed by whoever compares (`tests.replication.roles.test_kafka_answers`), without Java.

Constraints: a history on which ours and Kafka's differ is refused, as nobody could replay it to its end.

Source: the released classes of `NEWEST`, run as in `tests.kafka.differential`.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broker.releases import NEWEST
from tests.golden.log.programs import run
from tests.kafka.controllers import FAILS, draw, replayed
from tests.kafka.jvm import KafkaJvm, KafkaThrewError
from tests.kafka.programs import random_program
from tests.replication.roles.test_kafka_answers import CONTROLLERS, HISTORY_COUNT, LOGS, PROGRAM_COUNT, SEED


def main(arguments: list[str]) -> int:
    """Write both files of answers into a folder."""
    folder = Path(arguments[0])
    with tempfile.TemporaryDirectory() as build_directory, KafkaJvm.start(Path(build_directory), NEWEST) as kafka:
        _keep(folder / CONTROLLERS, [answers_to(kafka, number) for number in range(HISTORY_COUNT)])
        _keep(folder / LOGS, list(_programs(kafka)))
    return 0


def answers_to(kafka: KafkaJvm, number: int) -> list[str]:
    """Return Kafka's answers to a history, up to where its builder fails."""
    history = draw(SEED, number)
    model, _ = replayed(history, kafka.release)
    theirs: list[str] = kafka.call("controller", elr=history.elr, steps=model.steps)
    end = next((place for place, answer in enumerate(theirs) if answer.startswith(FAILS)), len(theirs))
    if theirs[:end] != model.answers[:end]:
        raise ValueError(f"history {number} of seed {SEED}: ours and Kafka's differ")
    return theirs[:end]


def _programs(kafka: KafkaJvm) -> Iterator[dict[str, Any]]:
    """Yield the programs with Kafka's results; those that Kafka cannot end are left out."""
    for number in range(PROGRAM_COUNT):
        with tempfile.TemporaryDirectory() as folder:
            try:
                case = kafka.program(random_program(SEED, number), Path(folder))
            except KafkaThrewError:
                continue
            with tempfile.TemporaryDirectory() as empty:
                # What Kafka compressed is compared by the bytes that it wrote, which are not kept.
                difference = run(case, Path(empty))
            if difference is not None:
                raise ValueError(f"program {number} of seed {SEED}: {difference}")
            yield case


def _keep(file: Path, answers: list[Any]) -> None:
    file.write_bytes(lzma.compress(json.dumps(answers, separators=(",", ":")).encode(), preset=9))
    print(f"{file.name}: {len(answers)} kept, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
