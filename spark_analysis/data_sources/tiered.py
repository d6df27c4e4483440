"""Read a tiered segment that is stored in chunks: its manifest, its chunks, and its transaction index.

What it decides: what a manifest of version 1 says. The chunk index gives the size of each chunk before and after it was
transformed, of fixed sizes or of sizes in a small binary code; a compressed chunk is one Zstandard frame. Indexes stand
one after another in the object .indexes, at positions that the manifest gives, not compressed.

Constraints: no chunk grows beyond the size that the manifest gives, and no segment beyond 2 GiB, Kafka's own bound. An
encrypted object is refused: its key is not in the manifest alone.

Example: SegmentManifest.read(data, source="….rsm-manifest").chunks

Source: io.aiven.kafka.tieredstorage.manifest.SegmentManifestV1, manifest.index.serde.ChunkSizesBinaryCodec and
transform.DecompressionChunkEnumeration (May 2026).
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from broker.errors import InputError
from broker.ids import INT32_MAX
from broker.units import MIB

MANIFEST_BYTES_MAX: Final = 16 * MIB  # A segment of 2 GiB in chunks of 4 KiB has a tenth of this.
VERSION: Final = "1"
_COUNT: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">iib")  # Count, base, bytes a value.


@attrs.frozen
class Chunk:
    """Hold the bytes of one chunk before (`size_bytes`) and after it was transformed (`stored_bytes`)."""

    size_bytes: int
    stored_bytes: int


@attrs.frozen
class SegmentManifest:
    """Hold what a manifest says: the chunks in order, whether they are compressed, and where the transaction index is.

    `txn_index` is (position, size) in the object of indexes, None where the segment has no transaction index.
    """

    chunks: tuple[Chunk, ...]
    is_compressed: bool
    txn_index: tuple[int, int] | None

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the segment before it was transformed."""
        return sum(chunk.size_bytes for chunk in self.chunks)

    @classmethod
    def read(cls, data: bytes, *, source: str) -> SegmentManifest:
        """Return what the bytes of a manifest say; raise InputError if they are no manifest of version 1."""
        try:
            given: Any = json.loads(data)
            if given["version"] != VERSION:
                raise InputError(f"version {given['version']!r} of a manifest; {VERSION!r} is known", source=source)
            if given.get("encryption") is not None:
                raise InputError("the segment is encrypted, and its key is not in the manifest alone", source=source)
            chunks = tuple(_chunks(given["chunkIndex"], source))
            index = (given.get("segmentIndexes") or {}).get("transaction")
            place = None if index is None else (int(index["position"]), int(index["size"]))
            return cls(chunks, bool(given["compression"]), place)
        except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
            what = f"no manifest of a tiered segment: {type(error).__name__} {error}"
            raise InputError(what, source=source) from None


def read_manifest(path: str) -> SegmentManifest:
    """Return what the manifest at `path` says; raise InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MANIFEST_BYTES_MAX + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", source=path) from None
    if len(data) > MANIFEST_BYTES_MAX:
        raise InputError(f"larger than the {MANIFEST_BYTES_MAX} bytes allowed for a manifest", source=path)
    return SegmentManifest.read(data, source=path)


def chunks_of(path: str, manifest: SegmentManifest) -> Iterator[bytes]:
    """Yield the chunks of the segment at `path` as they were before they were transformed; raise InputError."""
    codec = pa.Codec("zstd")
    position = 0
    try:
        with Path(path).open("rb") as file:
            for chunk in manifest.chunks:
                data = file.read(chunk.stored_bytes)
                if len(data) < chunk.stored_bytes:
                    end = position + chunk.stored_bytes
                    what = f"ends at byte {position + len(data)}; its manifest has a chunk up to byte {end}"
                    raise InputError(what, source=path)
                if manifest.is_compressed:
                    data = codec.decompress(data, decompressed_size=chunk.size_bytes, asbytes=True)
                if len(data) != chunk.size_bytes:
                    what = f"the chunk at byte {position} has {len(data)} bytes; its manifest says {chunk.size_bytes}"
                    raise InputError(what, source=path)
                yield data
                position += chunk.stored_bytes
    except OSError as error:
        if error.errno is None:  # Arrow reports damaged data like this.
            what = f"the compressed chunk at byte {position} is damaged: {str(error).lower()}"
            raise InputError(what, source=path) from None
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", source=path) from None


def _chunks(index: Any, source: str) -> Iterator[Chunk]:
    size, total = int(index["originalChunkSize"]), int(index["originalFileSize"])
    if not 0 < size <= INT32_MAX or not 0 <= total <= INT32_MAX:
        raise InputError(f"chunks of {size} bytes of a segment of {total}", source=source)
    count = -(-total // size)
    if index["type"] == "fixed":
        stored = [int(index["transformedChunkSize"])] * (count - 1)
        stored += [int(index["finalTransformedChunkSize"])] if count else []
    elif index["type"] == "variable":
        stored = list(_sizes(base64.b64decode(index["transformedChunks"], validate=True)))
    else:
        raise InputError(f"a chunk index of type {index['type']!r}; fixed and variable are known", source=source)
    if len(stored) != count or any(not 0 <= each <= INT32_MAX for each in stored):
        raise InputError(f"{len(stored)} chunks of {size} bytes of a segment of {total}", source=source)
    for place, each in enumerate(stored):
        yield Chunk(size if place < count - 1 else total - size * (count - 1), each)


def _sizes(data: bytes) -> Iterator[int]:
    """Yield the sizes of transformed chunks: differences from the smallest one, but the last as it is."""
    (count,) = _COUNT.unpack_from(data)
    if count > 1:
        _, base, width = _HEAD.unpack_from(data)
        if not 1 <= width <= _COUNT.size or len(data) < _HEAD.size + (count - 1) * width + _COUNT.size:
            raise binascii.Error(f"{len(data)} bytes of {count} sizes")
        for place in range(count - 1):
            start = _HEAD.size + place * width
            yield base + int.from_bytes(data[start : start + width], "big")
    if count > 0:
        yield _COUNT.unpack_from(data, len(data) - _COUNT.size)[0]
