"""What is fuzzed, and the run: damaged inputs, none of which may do what is not declared.

A failure names the seed, the number of the input and the input itself, which `@pytest.mark.parametrize` can then pin.
"""

from __future__ import annotations

import faulthandler
import resource
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from broker.errors import BrokersideError

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
    """It gets a `share`th of the inputs, where one costs many times what others do."""


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


EDGES: Final = (0, 1, -1, 2**7 - 1, -(2**7), 2**15 - 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 13, 14, 48, 49, 61)
WIDTHS: Final = (2, 4, 8)
DRAWS_AT_ONCE: Final = 1 << 14
KIND_BITS: Final = 3


def numbers(seed: int) -> Iterator[int]:
    """Yield numbers of 62 random bits for ever."""
    generator = np.random.default_rng(seed)
    while True:
        yield from generator.integers(0, 2**62, DRAWS_AT_ONCE).tolist()


def mutated(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytearray]:
    """Yield `count` damaged inputs."""
    drawn = numbers(seed)
    for _ in range(count):
        number, which = divmod(next(drawn), len(seeds))
        data = bytearray(seeds[which])
        for _ in range(1 + number % 4):
            _change(data, next(drawn), seeds)
        yield data


def _change(data: bytearray, number: int, seeds: Sequence[bytes]) -> None:
    """Damage `data` once; `number` says how and where, from its lowest bits up."""
    kind, number = number % (1 << KIND_BITS), number >> KIND_BITS
    if not data:
        data += seeds[number % len(seeds)]
        return
    number, at = divmod(number, len(data))
    if kind == 0:
        data[at] ^= 1 << number % 8
    elif kind == 1:
        data[at] = number % 256
    elif kind == 2:
        number, which = divmod(number, len(WIDTHS))
        width = WIDTHS[which]
        data[at : at + width] = (EDGES[number % len(EDGES)] % (1 << 8 * width)).to_bytes(width, "big")
    elif kind == 3:
        del data[at : at + 1 + number % 16]
    elif kind == 4:
        data[at:at] = data[at : at + 1 + number % 64]
    elif kind == 5:
        del data[at:]
    elif kind == 6:
        end = min(at + 1 + number % 32, len(data))
        data[at:end] = bytes(end - at)
    else:
        number, which = divmod(number, len(seeds))
        other = seeds[which]
        data[at:] = other[number % len(other) if other else 0 :]
