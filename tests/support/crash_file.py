"""Compute the contents that one file may have after power loss; `tests.support.crash` states the rules.

What it decides: the content of the file, for a choice of the size steps that were durable and of the bytes of each
write that were.

Constraints: equal changes give equal contents in the same order, none twice.

How:
The size changes in steps; a crash keeps a prefix of them that includes every synced step. A write beyond the end is one
step at each block boundary considered and one at its end; a cut or growth is one step. Of each write, some part may be
durable. A choice of a number of steps and of one part per write gives a content.

Example: an empty file, append of b"ab" and of b"c", nothing synced: b"", zeros or b"ab", and either followed by a zero
or b"c".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, TypeAlias

import attrs

from broker.entropy import RandomSource
from tests.support.recorded import Resize, Write

Part: TypeAlias = tuple[int, int]
"""Bytes of a write that arrived: from, and to exclusive."""

NOTHING: Final[Part] = (0, 0)


@attrs.frozen
class UnsyncedChange:
    """Describe a change of a file: whether it is durable, the size before it, and the sizes it passes through."""

    done: Write | Resize
    is_sure: bool
    size_bytes_before: int
    size_steps: tuple[int, ...]

    def parts(self, block_size_bytes: int) -> tuple[Part, ...]:
        """Return the parts of the change's bytes that may survive: nothing first, all of them last."""
        if isinstance(self.done, Resize):
            return (NOTHING,)
        size_bytes = len(self.done.data)
        if self.is_sure:
            return ((0, size_bytes),)
        start = self.done.position
        cuts = [cut - start for cut in boundaries(start, start + size_bytes, block_size_bytes)]
        return (NOTHING, *((0, cut) for cut in cuts), *((cut, size_bytes) for cut in cuts), (0, size_bytes))


@attrs.frozen
class FileHistory:
    """Hold the durable content of a file, and the later changes in order."""

    start: bytes
    changes: tuple[UnsyncedChange, ...]
    block_size_bytes: int

    @property
    def step_count(self) -> int:
        """Return how many times the file's size changed, counting the steps of every change."""
        return sum(len(change.size_steps) for change in self.changes)

    @property
    def sure_step_count(self) -> int:
        """Return how many of the first size steps are durable: all up to the last durable change."""
        count = sure = 0
        for change in self.changes:
            count += len(change.size_steps)
            if change.is_sure:
                sure = count
        return sure

    def everything(self) -> bytes:
        """Return the content after every change."""
        return self._content(self.step_count, [options[-1] for options in self._options()])

    def nothing_unsure(self) -> bytes:
        """Return the content after only the durable changes."""
        return self._content(self.sure_step_count, [options[0] for options in self._options()])

    def contents(self) -> tuple[bytes, ...]:
        """Return every content that the file may have after power loss. Cost: exponential in pending changes."""
        return tuple(dict.fromkeys(self._contents()))

    def drawn(self, entropy: RandomSource) -> bytes:
        """Draw one content that the file may have after power loss."""
        steps = self.sure_step_count + entropy.next_int_bound(self.step_count - self.sure_step_count + 1)
        return self._content(steps, [options[entropy.next_int_bound(len(options))] for options in self._options()])

    def _contents(self) -> Iterator[bytes]:
        for step_count in range(self.sure_step_count, self.step_count + 1):
            for parts in product(*self._options()):
                yield self._content(step_count, parts)

    def _options(self) -> list[tuple[Part, ...]]:
        return [change.parts(self.block_size_bytes) for change in self.changes]

    def _content(self, step_count: int, parts: Sequence[Part]) -> bytes:
        """Return what the file holds after so many steps of its size, with these parts of its writes."""
        content = bytearray(self.start)
        for change, (start, end) in zip(self.changes, parts, strict=True):
            made = change.size_steps[: max(0, step_count)]
            step_count -= len(change.size_steps)
            if made:
                resize(content, made[-1])
            if isinstance(change.done, Write):
                # Bytes count within the size that the write made, or met as long as that is lost: an append whose size
                # is lost is lost, even where the file is longer as a cut before it is lost as well.
                position = change.done.position
                visible_end = min(position + end, len(content), made[-1] if made else change.size_bytes_before)
                if visible_end > position + start:
                    content[position + start : visible_end] = change.done.data[start : visible_end - position]
        return bytes(content)


def changes_of(
    start_size_bytes: int, done: Sequence[Write | Resize], is_sure: Sequence[bool], block_size_bytes: int
) -> tuple[UnsyncedChange, ...]:
    """Return the changes of a file that had `start_size_bytes` bytes at first, each with its size steps."""
    size_bytes = start_size_bytes
    changes = []
    for change, sure in zip(done, is_sure, strict=True):
        if isinstance(change, Resize):
            steps: tuple[int, ...] = (change.size_bytes,)
        else:
            end = change.position + len(change.data)
            steps = (*boundaries(size_bytes, end, block_size_bytes), end) if end > size_bytes else ()
        changes.append(UnsyncedChange(change, sure, size_bytes, steps))
        size_bytes = steps[-1] if steps else size_bytes
    return tuple(changes)


def boundaries(start: int, end: int, block_size_bytes: int) -> tuple[int, ...]:
    """Return the first, middle and last block boundary strictly between two byte positions."""
    found = range((start // block_size_bytes + 1) * block_size_bytes, end, block_size_bytes)
    return tuple(sorted({found[0], found[len(found) // 2], found[-1]})) if found else ()


def resize(content: bytearray, size_bytes: int) -> None:
    """Cut `content` to a size, or fill it up with zeros."""
    del content[size_bytes:]
    content.extend(bytes(size_bytes - len(content)))
