"""Read dumps and recipes in bounded pieces; no other module opens them.

Goals, most important first: no file is held whole in memory unless it is small by contract; a file that cannot be read
is one clear sentence.

Constraints: only paths that the user gave are opened; nothing read from a file ever becomes a path.

Example: b"".join(read_chunks("dump.txt")) is the whole content of the file.

Left out: compressed files, URLs and standard input: executors read files, not pipes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.errors import InputError

CHUNK_SIZE_BYTES: Final = 1_048_576


def read_chunks(path: str, *, chunk_size_bytes: int = CHUNK_SIZE_BYTES) -> Iterator[bytes]:
    """Yield a file's bytes in order, at most `chunk_size_bytes` at a time; raise InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(chunk_size_bytes):
                yield chunk
    except OSError as error:
        raise _unreadable(path, error) from None


def read_small_file(path: str, *, size_bytes_max: int) -> bytes:
    """Return a file's bytes; raise InputError if it cannot be read or is larger than `size_bytes_max`."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(size_bytes_max + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(data) > size_bytes_max:
        raise InputError(f"larger than the {size_bytes_max} bytes allowed for such a file", source=path)
    return data


def check_readable(path: str) -> None:
    """Raise InputError unless `path` can be opened or is a directory; jobs call it before Spark starts work."""
    if Path(path).is_dir():
        return
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: OSError) -> InputError:
    return InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", source=path)
