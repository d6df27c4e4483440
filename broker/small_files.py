"""Read a file, whole or in pieces, up to a limit in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.errors import InputError

PIECE_BYTES: Final = 1 << 20


def read_small(path: Path, *, size_bytes_max: int) -> bytes:
    """Return a file's bytes; raise InputError if it cannot be read or is larger than `size_bytes_max`."""
    return b"".join(read_pieces(path, size_bytes_max=size_bytes_max))


def read_pieces(path: Path, *, size_bytes_max: int) -> Iterator[bytes]:
    """Yield a file's bytes in pieces of at most `PIECE_BYTES`; raise InputError as `read_small` does."""
    left_bytes = size_bytes_max
    try:
        with path.open("rb") as file:
            while piece := file.read(min(PIECE_BYTES, left_bytes + 1)):
                left_bytes -= len(piece)
                if left_bytes < 0:
                    break
                yield piece
    except OSError as error:
        raise unreadable(path.name, error) from None
    if left_bytes < 0:
        raise InputError(f"larger than the {size_bytes_max:,} bytes allowed for such a file", source=path.name)


def unreadable(path: str, error: OSError) -> InputError:
    """Return the InputError for a file that the system refuses to open or to read."""
    return InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", source=path)
