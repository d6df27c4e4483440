"""Define the options of a dump: depth, data and its decoding, and a range of offsets.

Source: the options of kafka.tools.DumpLogSegments, 4.3.1; the range of offsets is ours.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs

from broker.errors import CorruptDataError
from broker.ids import INT32_MAX
from broker.java.utf8 import decode_java_utf8
from broker.units import MIB
from log.batches.allowance import DECODED_COST, ReadingAllowance
from log.batches.batch import RecordBatch
from log.batches.batch_v2 import HEADER, BatchV2
from log.batches.in_buffer import batches_in
from log.batches.scan import ScanOptions, scan
from log.record import Record
from log.tools.findings import Finding, Problems, claimed_offset, of_tail
from log.tools.sources import SourceFile

MESSAGE_SIZE_MAX: Final = 5 * MIB
"""The default of --max-message-size."""


def _number(data: bytes, size_bytes: int) -> str:
    """Return the big-endian number at the front of `data`, as Kafka's decoders of numbers read it."""
    if len(data) < size_bytes:
        raise CorruptDataError(f"{len(data)} bytes cannot be decoded as a number of {size_bytes}")
    return str(int.from_bytes(data[:size_bytes], "big", signed=True))


DECODERS: Final[Mapping[str, Callable[[bytes], str]]] = {
    "utf-8": decode_java_utf8,
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode("ascii"),
    "integer": lambda data: _number(data, 4),
    "long": lambda data: _number(data, 8),
}
"""How keys and values are shown, by name; what is not UTF-8 shows U+FFFD, as in Kafka."""

DECODER_CLASSES: Final[Mapping[str, str]] = {
    "org.apache.kafka.tools.api.StringDecoder": "utf-8",
    "org.apache.kafka.tools.api.IntegerDecoder": "integer",
    "org.apache.kafka.tools.api.LongDecoder": "long",
}
"""Our decoder for each class of Kafka's; DefaultDecoder prints where an array stands in memory."""


SHOWN_BYTES_MAX: Final = 8 * MIB
"""How much of a key or value is shown."""
HEADERS_SHOWN_MAX: Final = 1000
"""How many headers of a record are shown."""


def shown(data: bytes, decoder: str) -> str:
    """Return a key or value as text; of one that is very large its beginning, and how much is left out."""
    text = DECODERS[decoder](data[:SHOWN_BYTES_MAX])
    hidden = len(data) - SHOWN_BYTES_MAX
    return f"{text}... ({hidden:,} more bytes are not shown)" if hidden > 0 else text


@attrs.frozen(kw_only=True)
class DumpOptions:
    """Hold the options of a dump: a half-open range of offsets, and `bytes_max` bytes to read per segment."""

    deep: bool = False
    print_data: bool = False
    skip_record_metadata: bool = False
    index_sanity_check: bool = False
    verify_index_only: bool = False
    key_decoder: str = "utf-8"
    value_decoder: str = "utf-8"
    start_offset: int = 0
    end_offset: int | None = None
    bytes_max: int = INT32_MAX
    message_size_max: int = MESSAGE_SIZE_MAX
    """The bytes of a log that are read at the position of an index entry."""
    keep_going: bool = False
    metadata: bool = False
    """Whether values are records of the cluster's metadata, to be shown decoded."""
    hides_secrets: bool = False
    """Whether SCRAM credentials and values of secret settings are hidden in records of the cluster's metadata."""
    record_cost: int = 1
    """How many records as text cost as much as one that is shown."""
    topic_decoder: str | None = None
    """The decoder of `log.tools.dump_topics` for an internal topic's records, None for none."""

    @property
    def is_whole(self) -> bool:
        """Return whether files are read to their end."""
        return self.bytes_max == INT32_MAX and self.end_offset is None

    def allowance(self, file: SourceFile) -> ReadingAllowance:
        """Return how much of a file's compressed batches is read."""
        cost = DECODED_COST if self.metadata or self.topic_decoder else self.record_cost
        return ReadingAllowance(file.size_bytes, cost)

    def wants_batch(self, batch: RecordBatch) -> bool:
        """Return whether the batch overlaps the range of offsets."""
        # A wrapper of magic 0 or 1 is decompressed to find its base offset, and may be damaged.
        is_past = self.end_offset is not None and self.is_past(batch.base_offset)
        return self._has_begun(batch.last_offset) and not is_past

    def wants_all_of(self, batch: RecordBatch) -> bool:
        """Return whether the whole batch is in the range of offsets."""
        has_begun = self.start_offset == 0 or self._has_begun(batch.base_offset)
        return has_begun and not self.is_past(batch.last_offset)

    def wants_record(self, record: Record) -> bool:
        """Return whether the record is in the range of offsets."""
        return self._has_begun(record.offset) and not self.is_past(record.offset)

    def _has_begun(self, offset: int) -> bool:
        """Return whether the range begins at or below `offset`; start 0 also admits damaged negative offsets."""
        return self.start_offset == 0 or offset >= self.start_offset

    def is_past(self, offset: int) -> bool:
        """Return whether the range ends before `offset`."""
        return self.end_offset is not None and offset >= self.end_offset


def wanted_batches(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[RecordBatch]:
    """Yield the batches of a segment that overlap the range of offsets; raise CorruptDataError at damage.

    Wrong checksums and a torn tail go to `problems`. With `keep_going` so is all damage, and passed over.
    """
    whole = file.view()
    data = whole[: options.bytes_max]
    position = 0
    for start, end in _readable(file, data, problems) if options.keep_going else ((0, len(data)),):
        for batch in batches_in(data, start_position=start, end_position=end, source=file.shown):
            position = batch.end_position
            if isinstance(batch, BatchV2) and batch.size_bytes < HEADER.size:
                batch = batch.with_header_of(whole)
            if options.wants_batch(batch):
                if not batch.is_valid():
                    problems.damage(_wrong(batch, file, data))
                yield batch
    if position < len(data) and options.is_whole and not options.keep_going:
        problems.damage(of_tail(file.shown, data, position))


def _wrong(batch: RecordBatch, file: SourceFile, data: memoryview) -> Finding:
    """Return what is wrong with a batch that is not valid."""
    try:
        batch.ensure_valid()
    except CorruptDataError as error:
        return Finding(file.shown, error.what, batch.position, claimed_offset(data, batch.position))
    raise AssertionError(batch.position)


def _readable(file: SourceFile, data: memoryview, problems: Problems) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes between damages."""
    position = 0
    for chunk in scan(data, options=ScanOptions(keep_going=True)):
        for damage in chunk.damages:
            problems.pass_over(file.shown, damage)
            yield position, damage.position
            position = damage.position + damage.size_bytes
    yield position, len(data)
