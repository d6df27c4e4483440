"""`python -m tests.log.dirt`: everything that crashes and dirt do to a log, at full size; prints the counts as tables.

Torn and rotten tails at every byte, for each codec and shape of batch; power loss at any moment of short programs, and
of all programs of two steps; one fault at a time in each kind of file; and the fuzzing of every parser. The ordinary
tests run a share of the first two and all of the others. Stops at the first finding. Takes about ten minutes of one
core. Standard output carries the tables, in Markdown, and nothing else; standard error how far it is.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.log.crash import matrix, programs, tails
from tests.log.crash.shapes import SHAPES, written
from tests.log.fuzz.target import OUTCOMES

Row: TypeAlias = Sequence[object]
FUZZ_FOLDER: Final = Path(__file__).parent / "fuzz"
OUTCOME_NAMES: Final = ("cut", "kept", "emptied", "refused")


def main() -> int:
    """Run everything and return the exit status."""
    sections: tuple[tuple[str, Callable[[], Iterator[Row]]], ...] = (
        ("Damaged tails", tail_rows),
        ("Power loss", program_rows),
        ("One fault in one file", matrix_rows),
        ("Fuzzing", fuzz_rows),
    )
    for number, (title, section) in enumerate(sections, 1):
        started_s = time.monotonic()
        print(f"### {title}\n")
        for line in table(section()):
            print(line, flush=True)
        print(flush=True)
        tell(f"{title}: part {number} of {len(sections)} is done, after {time.monotonic() - started_s:.0f} s")
    return 0


def tell(progress: str) -> None:
    """Say on standard error how far the run is."""
    print(progress, file=sys.stderr, flush=True)


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown; the first row is its head."""
    for number, row in enumerate(rows):
        yield "| " + " | ".join(map(str, row)) + " |"
        if number == 0:
            yield "|" + "---|" * len(row)


def tail_rows() -> Iterator[Row]:
    """Yield what recovery did with each kind of damage, over all shapes and codecs."""
    yield ("damage", "logs", "states", *OUTCOME_NAMES)
    logs = [written(shape, codec) for shape, codec in SHAPES]
    sums = Counter[str]()
    for number, kind in enumerate(tails.DAMAGES, 1):
        tell(f"damaged tails: {kind}, {number} of {len(tails.DAMAGES)}")
        outcomes = sum((tails.sweep(log, kind) for log in logs), Counter[str]())
        sums += outcomes
        yield tail_row(kind, len(logs), outcomes)
    yield tail_row("all", len(logs), sums)


def tail_row(kind: str, log_count: int, outcomes: Counter[str]) -> Row:
    """Return one line of the table of tails."""
    return (kind, log_count, f"{outcomes.total():,}", *(f"{outcomes[name]:,}" for name in OUTCOME_NAMES))


def program_rows() -> Iterator[Row]:
    """Yield how many disks each program may leave, and how many of them were drawn and not enumerated."""
    yield ("program", "disks", "of them drawn", "gaps")
    tallies = []
    for number, name in enumerate(programs.PROGRAMS, 1):
        tell(f"power loss: {name}, {number} of {len(programs.PROGRAMS)}")
        tallies.append(programs.sweep(name))
        yield program_row(name, tallies[-1:])
    yield program_row(f"all these {len(tallies)}", tallies)
    pairs = programs.pairs()
    tallies = []
    for number, pair in enumerate(pairs, 1):
        tell(f"power loss: {', '.join(pair)}, {number} of {len(pairs)}")
        tallies.append(programs.sweep_steps(pair))
    yield program_row(f"all {len(pairs)} of two steps", tallies)


def program_row(name: str, tallies: Sequence[programs.Tally]) -> Row:
    """Return one line of the table of programs: the sum of some of them."""
    states, sampled, gaps = (
        sum(getattr(tally, field) for tally in tallies) for field in ("state_count", "sampled_count", "gap_count")
    )
    return (name, f"{states:,}", f"{sampled:,}", gaps)


def matrix_rows() -> Iterator[Row]:
    """Yield what one fault in each kind of file does."""
    yield ("file", *matrix.COLUMNS)
    for file in matrix.FILES:
        yield (f"`{file}`" if "," not in file else file, *matrix.row(file))


def fuzz_rows() -> Iterator[Row]:
    """Run the fuzzing tests and yield how many inputs each parser took and refused."""
    with redirect_stdout(sys.stderr):
        status = pytest.main(["-v", "--no-header", "-p", "no:cacheprovider", "--capture=fd", str(FUZZ_FOLDER)])
    if status is not pytest.ExitCode.OK:
        sys.exit(1)
    yield ("parser", "inputs", "read", "refused")
    for name, outcome in sorted(OUTCOMES.items()):
        total = outcome.accepted_count + outcome.refused_count
        yield (name, f"{total:,}", f"{outcome.accepted_count:,}", f"{outcome.refused_count:,}")


if __name__ == "__main__":
    sys.exit(main())
