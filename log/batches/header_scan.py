"""Scan the batch headers of a whole file into columns.

What it decides: where the batches of a file stand and what they say of themselves, at the speed of the memory, and at
which byte that ends: at the end, in a torn tail, or at a size that no batch can have.

Constraints: never raises for what the data holds; a file of any size is walked in pieces of bounded memory.

How: one compiled walk (`log.batches.headers_kernel`) fills a table of numbers, which is handed out as named columns.

Example:

    >>> columns = scan_headers(b"")
    >>> len(columns), columns.end_position, columns.damage
    (0, 0, None)

Source: ours; the rules are those of `log.batches.in_buffer`.
"""

from __future__ import annotations

from collections.abc import Iterator

from log.batches.header_table import as_array, joined, walk
from log.batches.in_buffer import BatchReader, end_within
from log.batches.record_columns import HeaderColumns
from log.codecs.crc import BytesLike


def scan_headers(
    data: BytesLike, *, start_position: int = 0, end_position: int | None = None, reader: BatchReader = BatchReader.FILE
) -> HeaderColumns:
    """Return the headers of all batches up to the end or to the first impossible size (see `damage`).

    Checksums are not verified and records not read, so a batch costs about 10 ns. Damage in the data raises nothing, a
    start below 0 or an end outside `data` UsageError.
    """
    array = as_array(data)
    end = end_within(len(array), start_position, end_position)
    chunks = [walk(array, min(start_position, end), end, reader is BatchReader.FILE)]
    while chunks[-1].damage is None and chunks[-1].end_position < end:  # Each walk moves on by a batch at least.
        chunks.append(walk(array, chunks[-1].end_position, end, reader is BatchReader.FILE))
    return joined(chunks)


def header_chunks(
    data: BytesLike, *, start_position: int = 0, end_position: int | None = None, reader: BatchReader = BatchReader.FILE
) -> Iterator[HeaderColumns]:
    """Yield the headers of `scan_headers` in bounded pieces, for files of any size."""
    array = as_array(data)
    end = end_within(len(array), start_position, end_position)
    position = min(start_position, end)
    while True:  # Each turn moves on by a batch at least, or ends.
        chunk = walk(array, position, end, reader is BatchReader.FILE)
        yield chunk
        position = chunk.end_position
        if chunk.damage is not None or position >= end:
            return
