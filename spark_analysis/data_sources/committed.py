"""Choose the batches that a consumer with isolation.level=read_committed is given, from a segment's own folder.

What it decides: which batches are left out: those of aborted transactions, which the transaction indexes list; control
batches; and everything from the first offset of a transaction that is still open at the end of the log.

Constraints: a transaction stands in the index of the segment with its end marker, so the indexes of the segment and of
all after it are read. No file is written.

How: open transactions are those of the last producer snapshot, and those that the headers of the batches after it
begin; a marker ends one. Tiered segments hold nothing that is still open, since a broker copies only what lies below
the last stable offset.

Example: Committed.of(segment).mask(headers) is True for each batch to read.

Left out: the high watermark, which no file of a partition has: what is on this disk counts as replicated. In tiered
storage, transactions that end in a segment which is not there.

Source: org.apache.kafka.storage.internals.log.UnifiedLog.fetchLastStableOffset and TransactionIndex, 4.3;
RemoteLogManager.RLMCopyTask.candidateLogSegments; KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.errors import InputError
from broker.ids import INT64_MAX
from broker.small_files import unreadable
from log.batches.header_table import as_array, walk
from log.batches.record_columns import HeaderColumns
from log.partition.producer_entry import SNAPSHOT_BYTES_MAX, parse_snapshot
from log.record import CONTROL_BIT, TRANSACTIONAL_BIT
from log.segments.file_names import LOG, PRODUCER_SNAPSHOT, TXN_INDEX
from log.segments.txn_index import AbortedTransaction, aborted_transactions
from log.tools.sources import named_file
from spark_analysis.data_sources.log_listing import MANIFEST, LogSegment
from spark_analysis.data_sources.tiered import read_manifest

INDEXES: Final = ".indexes"
_OFFSET_DIGITS: Final = 20


@attrs.frozen(eq=False)
class Committed:
    """Hold the aborted transactions that may reach into a segment, and the log's last stable offset."""

    aborted: tuple[AbortedTransaction, ...]
    last_stable_offset: int

    @classmethod
    def of(cls, segment: LogSegment) -> Committed:
        """Return what the files beside the segment say; raise InputError or CorruptDataError if one cannot be read."""
        folder = Path(segment.path).parent
        aborted = []
        for path in _files(folder):
            if _offset_of(path) >= segment.base_offset:
                aborted += [one for one in _aborted_in(path) if one.last_offset >= segment.base_offset]
        stable = INT64_MAX if segment.is_tiered else first_open_offset(folder)
        return cls(tuple(dict.fromkeys(aborted)), stable)

    def mask(self, batches: HeaderColumns) -> NDArray[np.bool_]:
        """Return which batches hold committed records, those without a transaction included."""
        is_new = batches.magic >= 2
        control = is_new & (batches.attributes & CONTROL_BIT != 0)
        transactional = is_new & (batches.attributes & TRANSACTIONAL_BIT != 0)
        aborted = np.zeros(len(batches), np.bool_)
        for one in self.aborted if transactional.any() else ():
            inside = (batches.base_offset >= one.first_offset) & (batches.base_offset <= one.last_offset)
            aborted |= inside & (batches.producer_id == one.producer_id)
        stable = batches.base_offset < self.last_stable_offset
        return np.asarray(stable & ~control & ~(transactional & aborted))


def first_open_offset(folder: Path) -> int:
    """Return the first offset of the transactions that are open at the end of the log in a folder; INT64_MAX if none.

    Cost: linear in the batches after the last producer snapshot.
    """
    files = _files(folder)
    logs = [path for path in files if path.suffix == LOG and _offset_of(path) >= 0]
    snapshots = [path for path in files if path.suffix == PRODUCER_SNAPSHOT and _offset_of(path) >= 0]
    start, opened = 0, {}
    if snapshots:
        start = _offset_of(snapshots[-1])
        for entry in parse_snapshot(_bytes(snapshots[-1], SNAPSHOT_BYTES_MAX), source=str(snapshots[-1])):
            if entry.current_txn_first_offset is not None:
                opened[int(entry.producer_id)] = int(entry.current_txn_first_offset)
    later = [path for path in logs if _offset_of(path) >= start]
    for path in later or logs[-1:]:
        for headers in _headers(path):
            _follow(headers, start, opened)
    return min(opened.values(), default=INT64_MAX)


def _follow(headers: HeaderColumns, start: int, opened: dict[int, int]) -> None:
    """Open and end transactions by the batches from offset `start` on."""
    bits = headers.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)
    rows = np.flatnonzero((headers.magic >= 2) & (bits & TRANSACTIONAL_BIT != 0) & (headers.base_offset >= start))
    producers, offsets = headers.producer_id[rows].tolist(), headers.base_offset[rows].tolist()
    for producer, offset, is_marker in zip(producers, offsets, (bits[rows] & CONTROL_BIT != 0).tolist(), strict=True):
        if is_marker:
            opened.pop(producer, None)
        else:
            opened.setdefault(producer, offset)


def _headers(path: Path) -> Iterator[HeaderColumns]:
    data = as_array(named_file(path).view())
    position = 0
    while position < len(data):  # Each turn moves on by a batch at least, or ends.
        headers = walk(data, position, len(data), True)
        yield headers
        if headers.damage is not None or headers.end_position == position:
            return
        position = headers.end_position


def _aborted_in(path: Path) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions that a transaction index, or a manifest's part of the indexes, lists."""
    if path.suffix == TXN_INDEX:
        yield from aborted_transactions(_bytes(path), source=str(path))
    elif path.suffix == MANIFEST:
        place = read_manifest(str(path)).txn_index
        if place is not None:
            indexes = path.with_suffix(INDEXES)
            yield from aborted_transactions(_bytes(indexes)[place[0] : sum(place)], source=str(indexes))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(str(folder), error) from None


def _bytes(path: Path, size_bytes_max: int = SNAPSHOT_BYTES_MAX) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(size_bytes_max + 1)
    except OSError as error:
        raise unreadable(str(path), error) from None
    if len(data) > size_bytes_max:
        raise InputError(f"larger than the {size_bytes_max} bytes allowed for such a file", source=str(path))
    return data


def _offset_of(path: Path) -> int:
    """Return the offset at the beginning of a file's name, -1 without one."""
    digits = path.name[:_OFFSET_DIGITS]
    return int(digits) if len(digits) == _OFFSET_DIGITS and digits.isascii() and digits.isdecimal() else -1
