"""Change the environment of this process for a block, and put it back.

Constraints: whatever ends the block, the variables have their former values afterwards, or are gone.

Example: with changed_environment({"SPARK_REMOTE": None}): ...

Left out: threads; the environment belongs to the process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set the environment's variables to the values of `changes`, None to remove one, while the block runs."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set_environment(changes)
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
