"""Random programs of operations on Kafka's UnifiedLog and cleaner, run by us as golden cases.

How: `tests.kafka.log_programs` draws a program; Kafka runs it and writes down results, states and files; the runner of
golden cases runs it on ours. A program is made smaller by leaving out operations.

A program ends early, in both, where a log cannot be opened again.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.log.programs import run
from tests.kafka.differential.areas import Area, fewer
from tests.kafka.log_jvm import KafkaAnswerError, KafkaLogs
from tests.kafka.log_programs import random_program

Program = dict[str, Any]


def area(kafka: KafkaLogs) -> Area[Program]:
    """Return the area of log programs."""
    counts = [0]

    def compare(program: Program) -> str | None:
        counts[0] = len(program["ops"])
        return difference(kafka, program)

    return Area(name="logs", draw=random_program, difference=compare, smaller=smaller, problem_count=lambda: counts[0])


def difference(kafka: KafkaLogs, program: Program) -> str | None:
    """Return the first difference between Kafka's run of a program and ours."""
    folder = Path(tempfile.mkdtemp())
    try:
        return run(kafka.program(copy.deepcopy(program), folder), folder)
    except KafkaAnswerError as refusal:
        return f"Kafka did not end the program: {refusal}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def smaller(program: Program) -> Iterator[Program]:
    """Yield programs with fewer operations, or a follower's append with fewer batches."""
    for operations in fewer(program["ops"]):
        if operations:
            yield {**program, "ops": operations}
    for place, operation in enumerate(program["ops"]):
        for less in _smaller_operation(operation):
            yield {**program, "ops": [*program["ops"][:place], less, *program["ops"][place + 1 :]]}


def _smaller_operation(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for batches in fewer(operation.get("batches", [])):
        if batches:
            yield {**operation, "batches": batches}
    batch = operation.get("batch")
    if batch is not None and len(batch["records"]) > 1:
        yield {**operation, "batch": {**batch, "records": batch["records"][:1]}}
