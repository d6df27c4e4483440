"""Record which statements each check reaches, and choose the checks that can notice a mutant.

What it decides: a check that does not reach the changed statement runs as before, and need not be run. What a file
keeps is of one text of the modules: of another it is recorded anew.

How: the checks run one after the other in a fork, in which every function marks its statements (`code_swap`).

Source: ours.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from tests.architecture.house import ROOT
from tests.replication.mutants.code_swap import Place, mark
from tests.replication.mutants.forks import in_fork
from tests.replication.mutants.until_noticed import Check

RECORD_S_MAX: Final = 7_200.0
"""The CPU seconds after which a recording has come to nothing: a machine needs about ten minutes."""


@attrs.frozen
class Reached:
    """Hold what one check reached: its name, its CPU seconds, and the statements."""

    name: str
    cpu_seconds: float
    places: frozenset[Place]


def recorded(checks: Iterable[Check], paths: Sequence[str], cpu_seconds: float = RECORD_S_MAX) -> list[Reached]:
    """Return what each check reaches of the modules at `paths`, as far as it comes in the CPU seconds.

    A check that complains of the modules as they are is left out.
    """

    def record() -> str:
        reached: set[Place] = set()
        found = []
        mark(paths, reached)
        start = time.process_time()
        for check in checks:
            reached.clear()
            before = time.process_time()
            if before - start >= cpu_seconds:
                break
            if not check.noticed():
                found.append(Reached(check.name, time.process_time() - before, frozenset(reached)))
        return "\n".join(_lines(found))

    done = in_fork(record, RECORD_S_MAX)
    assert done.status == 0, done.said
    return list(_read(done.said.splitlines()))


def kept(file: Path, paths: Sequence[str], record: Callable[[], list[Reached]]) -> list[Reached]:
    """Return what a file keeps of the modules as they are; record it and keep it there if it has nothing of these."""
    digest = hashlib.sha256(b"".join((ROOT / path).read_bytes() for path in paths)).hexdigest()
    if file.exists():
        head, *lines = file.read_text(encoding="utf-8").splitlines()
        if head == digest:
            return list(_read(lines))
    found = record()
    file.write_text("\n".join([digest, *_lines(found)]), encoding="utf-8")
    return found


def _equally_near(name: str) -> int:
    return 0


def reaching(
    reached: Sequence[Reached], place: Place, cpu_seconds: float, distance: Callable[[str], int] = _equally_near
) -> list[Reached]:
    """Return the checks that reach a statement: one, and all that end in the CPU seconds.

    Those whose names are nearest come first, of equally near ones the shortest.
    """
    chosen: list[Reached] = []
    total = 0.0
    found = [each for each in reached if place in each.places]
    for each in sorted(found, key=lambda each: (distance(each.name), each.cpu_seconds)):
        total += each.cpu_seconds
        if chosen and total > cpu_seconds:
            break
        chosen.append(each)
    return chosen


def _lines(found: Sequence[Reached]) -> Iterator[str]:
    """Yield all places on one line, then a line for each check with the numbers of its own."""
    places = sorted(frozenset[Place]().union(*(each.places for each in found)))
    numbers = {place: number for number, place in enumerate(places)}
    yield json.dumps(places)
    for each in found:
        yield json.dumps([each.name, each.cpu_seconds, sorted(numbers[place] for place in each.places)])


def _read(lines: Sequence[str]) -> Iterator[Reached]:
    places: list[Place] = [(path, line) for path, line in json.loads(lines[0])]
    for line in lines[1:]:
        name, cpu_seconds, numbers = json.loads(line)
        yield Reached(name, cpu_seconds, frozenset(places[number] for number in numbers))
