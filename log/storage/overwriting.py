"""Overwrite reserved bytes of a file through a memory mapping, as index entries are written.

What it decides: when a file may be written to through a mapping. A store to a mapping has no error: where the disk
has no room for the page, the system ends the process with a signal. Files that are reserved ahead, as indexes are,
have holes instead of room. So room is asked for before it is stored to, a piece at a time: a full disk is an error of
that call.

Constraints: what is stored survives the end of the process, as what is written does, and not a loss of power before
`fsync`, which takes stored pages along. The file must not be cut while it is mapped: the owner drops this first.

How: `posix_fallocate` of the 64 KiB around, once; then each store is a copy. Eight bytes take 0.3 µs, a call of
the system 1.2.

Left out: systems without `posix_fallocate`, and file systems that refuse it; there `can_put` is False.

Source: ours; Kafka's AbstractIndex stores into a mapping, too, and does not ask first.
"""

from __future__ import annotations

import errno
import mmap
import os
from typing import Final

from broker.units import KIB
from log.storage.protocol import Buffer

ROOM_BYTES: Final = 64 * KIB
"""How much room is asked for at once."""

_CANNOT: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENODEV})
_IS_KNOWN: Final = hasattr(os, "posix_fallocate")


class Overwriting:
    """A writable mapping of the first `size_bytes` bytes, at least one, of an open file."""

    __slots__ = ("_descriptor", "_memory", "_room_end", "_room_start", "size_bytes")

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        """Map the file; raise OSError."""
        self._descriptor = descriptor
        self._memory = mmap.mmap(descriptor, size_bytes) if _IS_KNOWN else None
        self._room_start = self._room_end = 0
        self.size_bytes = size_bytes

    def can_put(self, start: int, end: int) -> bool:
        """Return whether `put` may write these bytes of the file; raise OSError if the disk is full."""
        if self._room_start <= start and end <= self._room_end:
            return True
        if self._memory is None:
            return False
        room_start = start - start % ROOM_BYTES
        room_end = min(max(end, room_start + ROOM_BYTES), self.size_bytes)
        try:
            os.posix_fallocate(self._descriptor, room_start, room_end - room_start)
        except OSError as refusal:
            if refusal.errno not in _CANNOT:
                raise
            self._memory = None
            return False
        self._room_start, self._room_end = room_start, room_end
        return True

    def put(self, start: int, end: int, data: Buffer) -> None:
        """Overwrite the bytes `start` to `end`; `can_put` must have allowed that before."""
        memory = self._memory
        assert memory is not None, start
        memory[start:end] = data
