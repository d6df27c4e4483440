"""What is fuzzed, and the run: damaged inputs, none of which may do what is not declared.

A failure names the seed, the number of the input and the input itself, which `@pytest.mark.parametrize` can then pin.
"""

from __future__ import annotations

import faulthandler
import resource
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from broker.errors import BrokersideError
from tests.log.fuzz.mutator import mutated

input_count = 400
"""How many inputs a target gets; the fixture of that name sets it."""
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
    share: int = 1
    """It gets a `share`th of the inputs."""


@attrs.frozen
class Outcome:
    """How many inputs were taken and how many refused."""

    accepted_count: int
    refused_count: int


def fuzz(target: Target, *, seed: int = 1) -> Outcome:
    """Run a target's share of `input_count` inputs; raise AssertionError at one that does what is not declared.

    Some inputs have to be taken, and some refused if the target may refuse any.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accepted, count = 0, input_count // target.share
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
    assert accepted > 0, f"{target.name}: nothing was taken"
    assert (accepted < count) == bool(target.allowed), f"{target.name}: {accepted} of {count} were taken"
    return Outcome(accepted, count - accepted)
