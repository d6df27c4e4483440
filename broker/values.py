"""Define value classes for millions of instances, frozen for type checkers alone, and a short repr of options."""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from attrs import frozen as value
else:
    value = functools.partial(attrs.define, unsafe_hash=True, weakref_slot=False)

__all__ = ("changed_repr", "value")


def changed_repr(self: Any) -> str:
    """Return the call that makes an attrs instance, without the fields that have their defaults.

    For options of many fields, as their `__repr__`; a function is written by its name.
    """
    changed = []
    for field in attrs.fields(type(self)):
        value = getattr(self, field.name)
        default = field.default.factory() if isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type] # Of this class at run time.
        if value != default:
            changed.append(f"{field.name}={_written(value)}")
    return f"{type(self).__name__}({', '.join(changed)})"


def _written(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))}{',' if len(value) == 1 else ''})"
    return getattr(value, "__name__", None) or repr(value)
