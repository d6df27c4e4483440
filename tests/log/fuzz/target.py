"""What is fuzzed, and the run: 100,000 damaged inputs a target, none of which may do what is not declared.

Other parsers join by writing a `Target` beside their tests and a test that calls `fuzz` with it. A failure names the
seed, the number of the input and the input itself, which `@pytest.mark.parametrize` can then pin.
"""

from __future__ import annotations

import faulthandler
import resource
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from broker.errors import BrokersideError
from tests.log.fuzz.mutator import mutated

INPUT_COUNT: Final = 100_000
HANG_SECONDS: Final = 1800
"""A target that takes longer is in an endless loop: a run takes five to forty seconds of one processor."""
MEMORY_KIB_MAX: Final = 512 * 1024
"""How much the largest input may take, and the rest of the process with it, beyond what it had."""


@attrs.frozen
class Target:
    """A parser, sound inputs, and what it may raise."""

    name: str
    seeds: Sequence[bytes]
    run: Callable[[bytes], object]
    """Parses, and compares with what must be equal: an AssertionError is a finding."""
    repair: Callable[[bytearray], bytes] | None = None
    """Makes checksums right again in every second input, so that what they guard is reached."""
    allowed: tuple[type[Exception], ...] = (BrokersideError,)


@attrs.frozen
class Outcome:
    """How many inputs were taken and how many refused."""

    accepted_count: int
    refused_count: int


OUTCOMES: Final[dict[str, Outcome]] = {}
"""Every run of this process, by target, for `python -m tests.log.dirt` to print."""


def fuzz(target: Target, *, count: int = INPUT_COUNT, seed: int = 1) -> Outcome:
    """Run `count` inputs; raise AssertionError at the first that does what is not declared."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accepted = 0
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
    try:
        for index, damaged in enumerate(mutated(target.seeds, count, seed)):
            data = bytes(damaged) if target.repair is None or index % 2 else target.repair(damaged)
            try:
                target.run(data)
                accepted += 1
            except target.allowed:
                pass
            except Exception as finding:
                place = f"{target.name}: input {index} of seed {seed}, {data.hex()}"
                raise AssertionError(f"{place}: {type(finding).__name__}: {finding}") from finding
    finally:
        faulthandler.cancel_dump_traceback_later()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown <= MEMORY_KIB_MAX, f"{target.name}: memory grew by {grown} KiB"
    OUTCOMES[target.name] = Outcome(accepted, count - accepted)
    return OUTCOMES[target.name]
