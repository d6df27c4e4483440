"""Read dumps and recipes in bounded pieces; no other module opens them.

Only paths that the user gave are opened; nothing read from a file ever becomes a path.
"""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from broker.errors import InputError
from broker.small_files import unreadable

CHUNK_SIZE_BYTES: Final = 1_048_576
COMPRESSED: Final = (".gz", ".zst", ".bz2")
"""The endings of compressed files; how one is compressed is read from its first bytes."""
EXPANDED_BYTES_MAX: Final = 64 << 20
EXPANSION_MAX: Final = 64  # Dumps shrink to about a twentieth, indented JSON of many partitions to a fiftieth.
_MAGICS: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"))


def read_chunks(path: str, *, chunk_size_bytes: int = CHUNK_SIZE_BYTES, source: str | None = None) -> Iterator[bytes]:
    """Yield a file's bytes in order, decompressed, at most `chunk_size_bytes` at a time.

    Raises InputError if the file cannot be read, or its compressed data is damaged; it names `source`, or the path.
    """
    yield from _chunks(lambda: _opened(path, codec_of(path)), chunk_size_bytes, _limit_of(path), source or path)


def _limit_of(path: str) -> int | None:
    """Return how many bytes a compressed file may expand to, None for any other file."""
    try:
        if codec_of(path) is not None:
            return max(EXPANDED_BYTES_MAX, EXPANSION_MAX * Path(path).stat().st_size)
    except OSError:  # Its reader says why.
        pass
    return None


def chunks_of(content: bytes, *, source: str) -> Iterator[bytes]:
    """Yield the bytes of a file's content, decompressed, in pieces; raise InputError as `read_chunks` does."""
    limit = None if _codec(content) is None else max(EXPANDED_BYTES_MAX, EXPANSION_MAX * len(content))
    yield from _chunks(lambda: _opened(io.BytesIO(content), _codec(content)), CHUNK_SIZE_BYTES, limit, source)


def _chunks(
    opened: Callable[[], AbstractContextManager[Any]], chunk_size_bytes: int, limit: int | None, said: str
) -> Iterator[bytes]:
    size_bytes = 0
    try:
        with opened() as file:
            while chunk := file.read(chunk_size_bytes):
                size_bytes += len(chunk)
                if limit is not None and size_bytes > limit:
                    what = f"expands to more than {limit:,} bytes, many times its size; unpack it first to have it read"
                    raise InputError(what, source=said)
                yield bytes(chunk)
    except FileNotFoundError as error:
        raise unreadable(said, error) from None
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise InputError(f"the compressed data is damaged: {str(error).lower()}", source=said) from None
    except OSError as error:
        if error.errno is None:  # Arrow and bz2 report damaged data like this.
            raise InputError(f"the compressed data is damaged: {str(error).lower()}", source=said) from None
        raise unreadable(said, error) from None


def read_head(path: str, size_bytes: int, *, source: str | None = None) -> bytes:
    """Return the first bytes of a file, decompressed, all if there are fewer than `size_bytes`.

    Raises InputError as `read_chunks` does.
    """
    held = b""
    for chunk in read_chunks(path, chunk_size_bytes=size_bytes, source=source):
        held += chunk
        if len(held) >= size_bytes:
            break
    return held[:size_bytes]


def codec_of(path: str) -> str | None:
    """Return how a file is compressed, gzip, zstd or bzip2, by its first bytes; None if it is not.

    Raises OSError, and InputError for what is no regular file.
    """
    _check_regular(path, path)
    with Path(path).open("rb") as file:
        return _codec(file.read(4))


def _codec(head: bytes) -> str | None:
    return next((codec for magic, codec in _MAGICS if head.startswith(magic)), None)


def _opened(file: str | io.BytesIO, codec: str | None) -> AbstractContextManager[Any]:
    if codec == "gzip":
        return gzip.open(file, "rb")
    if codec == "bzip2":
        return bz2.open(file, "rb")
    if codec == "zstd":
        import pyarrow as pa  # Late: recipes are read without it.

        opened: AbstractContextManager[Any] = pa.input_stream(file, compression="zstd")
        return opened
    return Path(file).open("rb") if isinstance(file, str) else file


def read_small_file(path: str, *, size_bytes_max: int) -> bytes:
    """Return a file's bytes, decompressed; raise InputError if it cannot be read or is larger than `size_bytes_max`."""
    held, size_bytes, limit = [], 0, _limit_of(path)
    if limit is not None and limit >= size_bytes_max:
        limit = None  # What expands to more is too large unpacked as well.
    pieces = min(CHUNK_SIZE_BYTES, size_bytes_max + 1)
    for chunk in _chunks(lambda: _opened(path, codec_of(path)), pieces, limit, path):
        held.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > size_bytes_max:
            raise InputError(f"larger than the {size_bytes_max:,} bytes allowed for such a file", source=path)
    return b"".join(held)


def check_readable(path: str, *, source: str | None = None) -> None:
    """Raise InputError unless `path` is a directory or a file that can be opened; it names `source`, or the path."""
    found = Path(path)
    try:
        if found.is_dir():
            return
        _check_regular(path, source or path)
        with found.open("rb"):
            pass
    except OSError as error:
        raise unreadable(source or path, error) from None


def _check_regular(path: str, said: str) -> None:
    """Raise InputError for a pipe or a device.

    A pipe could be read once, and only while somebody writes.
    """
    found = Path(path)
    if found.exists() and not found.is_file() and not found.is_dir():
        raise InputError("not a regular file; executors read files, so save its content to one first", source=said)
