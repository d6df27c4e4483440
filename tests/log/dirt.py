"""`python -m tests.log.dirt`: everything that crashes and dirt do to a log, at full size; prints the counts as tables.

Torn and rotten tails at every byte, for each codec and shape of batch; power loss at any moment of short programs, and
of all programs of two steps; one fault at a time in each kind of file; and the fuzzing of every parser. The ordinary
tests run a share of the first two and all of the others. Stops at the first finding. Takes some minutes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.log.crash import matrix, programs, tails
from tests.log.crash.shapes import SHAPES, written
from tests.log.fuzz.target import OUTCOMES

FUZZ_FOLDER: Final = Path(__file__).parent / "fuzz"
OUTCOME_NAMES: Final = ("cut", "kept", "emptied", "refused")


def main() -> int:
    """Run everything and return the exit status."""
    for title, section in (
        ("Damaged tails", tail_rows),
        ("Power loss", program_rows),
        ("One fault in one file", matrix_rows),
        ("Fuzzing", fuzz_rows),
    ):
        print(f"### {title}\n")
        for line in table(section()):
            print(line, flush=True)
        print()
    return 0


def table(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown; the first row is its head."""
    for number, row in enumerate(rows):
        yield "| " + " | ".join(map(str, row)) + " |"
        if number == 0:
            yield "|" + "---|" * len(row)


def tail_rows() -> Iterator[Sequence[object]]:
    """Yield what recovery did with each kind of damage, over all shapes and codecs."""
    yield ("damage", "logs", "states", *OUTCOME_NAMES)
    logs = [written(shape, codec) for shape, codec in SHAPES]
    for kind in tails.DAMAGES:
        outcomes = sum((tails.sweep(log, kind) for log in logs), Counter[str]())
        yield (kind, len(logs), outcomes.total(), *(outcomes[name] for name in OUTCOME_NAMES))


def program_rows() -> Iterator[Sequence[object]]:
    """Yield how many disks each program may leave, and how many of them were drawn and not enumerated."""
    yield ("program", "disks", "of them drawn", "gaps")
    for name in programs.PROGRAMS:
        tally = programs.sweep(name)
        yield (name, tally.state_count, tally.sampled_count, tally.gap_count)
    pairs = [programs.sweep_steps(pair) for pair in programs.pairs()]
    yield (
        f"all {len(pairs)} of two steps",
        sum(tally.state_count for tally in pairs),
        sum(tally.sampled_count for tally in pairs),
        sum(tally.gap_count for tally in pairs),
    )


def matrix_rows() -> Iterator[Sequence[object]]:
    """Yield what one fault in each kind of file does."""
    yield ("file", *matrix.COLUMNS)
    for file in matrix.FILES:
        yield (f"`{file}`" if "," not in file else file, *matrix.row(file))


def fuzz_rows() -> Iterator[Sequence[object]]:
    """Run the fuzzing tests and yield how many inputs each parser took and refused."""
    status = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", "--capture=fd", str(FUZZ_FOLDER)])
    if status is not pytest.ExitCode.OK:
        sys.exit(1)
    yield ("parser", "inputs", "read", "refused")
    for name, outcome in sorted(OUTCOMES.items()):
        total = outcome.accepted_count + outcome.refused_count
        yield (name, f"{total:,}", f"{outcome.accepted_count:,}", f"{outcome.refused_count:,}")


if __name__ == "__main__":
    sys.exit(main())
