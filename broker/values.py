"""Define value classes that are created by the million: frozen for type checkers, plain at run time.

A frozen attrs class sets each field of a new instance through a call, which takes three to four times as long as
setting it. Where an event of a simulation makes a dozen values, that is a tenth of the whole.

Constraints: `value` is `attrs.frozen` to mypy, which refuses every assignment to a field; at run time nothing does.
Instances compare and hash by their fields, as frozen ones do, and nothing refers to them weakly. Everything that is
not made at every event is `attrs.frozen`.

Example:

    >>> @value
    ... class Fetch:
    ...     partition: int
    ...
    >>> Fetch(0) == Fetch(0), Fetch(0) == Fetch(1)
    (True, False)

Left out: classes with converters and validators, where the difference is lost in what those take.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from attrs import frozen as value
else:
    value = functools.partial(attrs.define, unsafe_hash=True, weakref_slot=False)

__all__ = ("value",)
