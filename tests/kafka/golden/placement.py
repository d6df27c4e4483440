"""Write the golden files of placement: the cases that are there, answered by a release of Kafka.

What it decides: the layout of a file, and which matrix is written as a digest.

How: a case keeps its name and its input; what it expects is asked anew. Files have a case a line, ASCII only.

Example: envelope("java_random", "Apache Kafka 4.3.1, OpenJDK 17.0.15", cases)

Left out: what the cases say beside name, input and answer, such as `hints`, which nobody reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from tests.golden.files import SCHEMA_VERSION
from tests.golden.runners import Rows, in_form_of
from tests.kafka.golden.jvm import GoldenJvm, Json

GIVEN: Final = Path(__file__).parents[2] / "golden" / "placement"
"""Where the inputs are read: the files that are checked in."""
ROWS_SHOWN_MAX: Final = 1_000
"""How many partitions are written row by row; a digest stands for more."""
CLASSIC: Final = "admin_utils"
"""The algorithm that only releases up to 4.0 have."""


def algorithms() -> list[str]:
    """Return the algorithms of which there are files, by name."""
    return sorted(path.stem for path in GIVEN.glob("*.json"))


def given_cases(algorithm: str) -> list[Mapping[str, Json]]:
    """Return name and input of each case of the file that is checked in."""
    document = json.loads((GIVEN / f"{algorithm}.json").read_text("utf-8"))
    return [{"name": case["name"], "input": case["input"]} for case in document["cases"]]


def answered(kafka: GoldenJvm, algorithm: str, case: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a case with Kafka's answer."""
    answer = dict(kafka.ask(algorithm, case["input"]))
    expected = answer.get("expected")
    if expected is not None:
        if "calls" in expected:
            answer["expected"] = {**expected, "calls": [digested(call, 0) for call in expected["calls"]]}
        else:
            answer["expected"] = digested(expected, expected.get("first_partition", 0))
    return {"name": case["name"], "input": case["input"], **answer}


def digested(answer: Mapping[str, Json], first_partition: int) -> Mapping[str, Json]:
    """Return an answer with a digest for its matrix, where that is large."""
    rows = answer.get("replicas", ())
    if len(rows) <= ROWS_SHOWN_MAX:
        return answer
    return in_form_of({"sha256": ""}, {**answer, "replicas": Rows(np.array(rows, np.int32), first_partition)})


def envelope(algorithm: str, source: str, cases: Iterable[Mapping[str, Json]]) -> str:
    """Return the text of a golden file."""
    head = _compact({"algorithm": algorithm, "schema_version": SCHEMA_VERSION, "source": source})
    lines = ",\n".join(map(_compact, cases))
    return f'{head[:-1]},"cases":[\n{lines}\n]}}\n'


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))
