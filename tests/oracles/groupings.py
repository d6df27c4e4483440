"""Every way to put things into groups, once each: which number a group has does not matter."""

from __future__ import annotations

from collections.abc import Iterator


def groupings(count: int) -> Iterator[tuple[int, ...]]:
    """Yield the group of each of `count` things; groups are numbered as they come.

    >>> list(groupings(2))
    [(0, 0), (0, 1)]
    """
    if not count:
        yield ()
        return
    for first in groupings(count - 1):
        for group in range(max(first, default=-1) + 2):
            yield (*first, group)
