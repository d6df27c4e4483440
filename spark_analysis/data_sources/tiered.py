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

from broker.errors import InputError, shorten
from broker.ids import INT32_MAX
from broker.small_files import unreadable
from broker.units import MIB

MANIFEST_BYTES_MAX: Final = 16 * MIB  # A segment of 2 GiB in chunks of 4 KiB has a tenth of this.
CHUNK_COUNT_MAX: Final = 1 << 20  # 2 GiB in chunks of 2 KiB; the default of chunk.size is 4 MiB.
VERSION: Final = "1"
_COUNT: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">iib")  # Count, base, bytes a value.
_KINDS: Final = {str: "text", int: "whole number", bool: "truth value", dict: "object"}


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
        except (ValueError, RecursionError):
            raise InputError("is no JSON, as a manifest of a tiered segment is", source=source) from None
        manifest = _Fields(given, source)
        if (version := manifest.of("version", str)) != VERSION:
            raise InputError(f"version {version!r} of a manifest; {VERSION!r} is known", source=source)
        if given.get("encryption") is not None:
            raise InputError("the segment is encrypted, and its key is not in the manifest alone", source=source)
        chunks = tuple(_chunks(_Fields(manifest.of("chunkIndex", dict), source)))
        indexes = manifest.of("segmentIndexes", dict) if given.get("segmentIndexes") is not None else {}
        place = None
        if indexes.get("transaction") is not None:
            index = _Fields(indexes["transaction"], source)
            place = index.size("position"), index.size("size")
        return cls(chunks, manifest.of("compression", bool), place)


@attrs.frozen
class _Fields:
    """Give the fields of an object in a manifest, each of the type that it has to have."""

    held: Any
    source: str

    def of(self, name: str, kind: type) -> Any:
        """Return a field of the manifest; raise InputError if it is missing or of another type."""
        if not isinstance(self.held, dict):
            raise InputError("no manifest of a tiered segment: an object of JSON is needed", source=self.source)
        if name not in self.held:
            raise InputError(f"no manifest of a tiered segment: there is no {name!r}", source=self.source)
        value = self.held[name]
        if type(value) is not kind:
            raise self.refusal(f"{name!r} is {shorten(json.dumps(value))}, no {_KINDS[kind]}")
        return value

    def size(self, name: str) -> int:
        """Return a field that is a size in bytes; raise InputError outside 0 to 2^31 - 1."""
        value: int = self.of(name, int)
        if not 0 <= value <= INT32_MAX:
            raise self.refusal(f"{name!r} is {value}; allowed are 0 to {INT32_MAX}")
        return value

    def refusal(self, why: str) -> InputError:
        """Return the error for a manifest that says what cannot be."""
        return InputError(f"no manifest of a tiered segment: {why}", source=self.source)


def read_manifest(path: str) -> SegmentManifest:
    """Return what the manifest at `path` says; raise InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MANIFEST_BYTES_MAX + 1)
    except OSError as error:
        raise unreadable(path, error) from None
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
        raise unreadable(path, error) from None


def _chunks(index: _Fields) -> Iterator[Chunk]:
    """Yield the chunks that a chunk index lists; their number is known to be allowed before any is made."""
    size, total = index.size("originalChunkSize"), index.size("originalFileSize")
    count = -(-total // max(size, 1))
    if not size or count > CHUNK_COUNT_MAX:
        raise index.refusal(f"chunks of {size} bytes of a segment of {total}; at most {CHUNK_COUNT_MAX:,} are allowed")
    kind = index.of("type", str)
    if kind == "fixed":
        stored = [index.size("transformedChunkSize")] * (count - 1)
        stored += [index.size("finalTransformedChunkSize")] if count else []
    elif kind == "variable":
        try:
            stored = list(_sizes(base64.b64decode(index.of("transformedChunks", str), validate=True)))
        except (ValueError, struct.error):  # binascii.Error is a ValueError.
            raise index.refusal("'transformedChunks' are no sizes in Base64") from None
    else:
        raise index.refusal(f"a chunk index of type {kind!r}; fixed and variable are known")
    if len(stored) != count or any(not 0 <= each <= INT32_MAX for each in stored):
        raise index.refusal(f"{len(stored)} chunks of {size} bytes of a segment of {total}")
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
