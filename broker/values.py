"""Define value classes for millions of instances: frozen for type checkers, mutable at run time."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from attrs import frozen as value
else:
    value = functools.partial(attrs.define, unsafe_hash=True, weakref_slot=False)

__all__ = ("value",)
