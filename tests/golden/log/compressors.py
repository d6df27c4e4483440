"""What Kafka's compressors wrote, for programs whose sizes and digests follow from it.

Which bytes stand for a content is the compressor's choice, and the same library chooses others in its next version. So
what stands compressed in one of the case's files is compressed to those bytes; snappy otherwise to those of
`tests.golden.log.snappy`; and a zstd frame of a batch that is in no file is brought to the size that the log grew by.
All of it is about bytes only: what is compressed is ours, and a wrong content is found in no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

import zstandard

from log.batches.batch_v2 import HEADER, BatchV2
from log.batches.in_buffer import batches_in
from log.batches.legacy import LegacyBatch
from log.codecs.compression import Codec, compress
from tests.golden.log.snappy import compress_stream

WRAPPED_AT: Final = (26, 34)
"""Where the value of a wrapper without key begins, by magic."""
CALLERS: Final = ("log.batches.build", "log.batches.build", "log.compaction.building")
EMPTY_BLOCK: Final = bytes(3)
ZSTD_LEVELS: Final = (3, *range(1, 20))

Content = tuple[Codec, int, bytes]
"""Codec, magic, and what is compressed."""


class Compressor:
    """Compresses for one case. `size_bytes` is what the next batch has to come to, None where that is not known."""

    def __init__(self, folder: Path) -> None:
        self.known = dict(compressed_in(folder))
        self.size_bytes: int | None = None

    def compress(self, codec: Codec, data: bytes, *, magic: int = 2, level: int | None = None) -> bytes:
        """Return `data` compressed, as `log.codecs.compression.compress` does."""
        known = self.known.get((codec, magic, bytes(data)))
        if known is not None:
            return known
        if codec is Codec.SNAPPY:
            return compress_stream(data)
        made = compress(codec, data, magic=magic, level=level)
        if codec is not Codec.ZSTD or self.size_bytes in (None, HEADER.size + len(made)):
            return made
        return zstd_of_size(data, self.size_bytes - HEADER.size) or made


@contextmanager
def kafkas_compressors(folder: Path) -> Iterator[Compressor]:
    """Let batches be compressed as in the case in `folder` for the time of the block."""
    compressor = Compressor(folder)
    with ExitStack() as patches:
        for module in CALLERS:
            patches.enter_context(patch(f"{module}.compress", compressor.compress))
        yield compressor


def compressed_in(folder: Path) -> Iterator[tuple[Content, bytes]]:
    """Yield what stands compressed in the log files below `folder`, and as which bytes."""
    for path in sorted(folder.rglob("*.log*")):
        for batch in batches_in(path.read_bytes() if path.is_file() else b""):
            assert isinstance(batch, BatchV2 | LegacyBatch)
            if batch.codec is not Codec.NONE:
                start = HEADER.size if batch.magic >= 2 else WRAPPED_AT[batch.magic]
                yield (batch.codec, batch.magic, bytes(batch.payload())), bytes(batch.data[start:])


def zstd_of_size(data: bytes, size_bytes: int) -> bytes | None:
    """Return a frame of `data` that has `size_bytes`, or None where none is found; empty blocks fill it up."""
    for level in ZSTD_LEVELS:
        for flags in range(4):
            compressor = zstandard.ZstdCompressor(
                level=level, write_content_size=bool(flags & 1), write_checksum=bool(flags & 2)
            )
            frame = compressor.compress(data)
            missing = size_bytes - len(frame)
            if missing >= 0 and missing % len(EMPTY_BLOCK) == 0:
                header_size = zstandard.frame_header_size(frame)
                return frame[:header_size] + EMPTY_BLOCK * (missing // len(EMPTY_BLOCK)) + frame[header_size:]
    return None
