"""Read dumps and recipes in bounded pieces; no other module opens them.

Only paths that the user gave are opened; nothing read from a file ever becomes a path.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from broker.errors import InputError
from broker.small_files import unreadable

CHUNK_SIZE_BYTES: Final = 1_048_576
_MAGICS: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))


def read_chunks(path: str, *, chunk_size_bytes: int = CHUNK_SIZE_BYTES, source: str | None = None) -> Iterator[bytes]:
    """Yield a file's bytes in order, decompressed, at most `chunk_size_bytes` at a time.

    Raises InputError if the file cannot be read, or its compressed data is damaged; it names `source`, or the path.
    """
    said = source or path
    try:
        with _opened(path) as file:
            while chunk := file.read(chunk_size_bytes):
                yield bytes(chunk)
    except FileNotFoundError as error:
        raise unreadable(said, error) from None
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise InputError(f"the compressed data is damaged: {str(error).lower()}", source=said) from None
    except OSError as error:
        if error.errno is None:  # Arrow reports damaged zstd data like this.
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
    """Return how a file is compressed, gzip or zstd, by its first bytes; None if it is not.

    Raises OSError, and InputError for what is no regular file.
    """
    _check_regular(path, path)
    with Path(path).open("rb") as file:
        head = file.read(4)
    return next((codec for magic, codec in _MAGICS if head.startswith(magic)), None)


def _opened(path: str) -> AbstractContextManager[Any]:
    codec = codec_of(path)
    if codec == "gzip":
        return gzip.open(path, "rb")
    if codec == "zstd":
        import pyarrow as pa  # Late: recipes are read without it.

        opened: AbstractContextManager[Any] = pa.input_stream(path, compression="zstd")
        return opened
    return Path(path).open("rb")


def read_small_file(path: str, *, size_bytes_max: int) -> bytes:
    """Return a file's bytes, decompressed; raise InputError if it cannot be read or is larger than `size_bytes_max`."""
    held, size_bytes = [], 0
    for chunk in read_chunks(path, chunk_size_bytes=min(CHUNK_SIZE_BYTES, size_bytes_max + 1)):
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
