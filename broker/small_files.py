"""Read a file that is small by contract, and never more than its limit.

Constraints: only paths that the user gave are opened. A device or a pipe has no size that could be asked for, so that
reading ends where the limit does.

Example: read_small(Path("racks.json"), size_bytes_max=64 << 20)

Source: ours.
"""

from __future__ import annotations

from pathlib import Path

from broker.errors import InputError


def read_small(path: Path, *, size_bytes_max: int) -> bytes:
    """Return a file's bytes; raise InputError if it cannot be read or is larger than `size_bytes_max`."""
    try:
        with path.open("rb") as file:
            data = file.read(size_bytes_max + 1)
    except OSError as error:
        raise unreadable(path.name, error) from None
    if len(data) > size_bytes_max:
        raise InputError(f"larger than the {size_bytes_max:,} bytes allowed for such a file", source=path.name)
    return data


def unreadable(path: str, error: OSError) -> InputError:
    """Return the InputError for a file that the system refuses to open or to read."""
    return InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", source=path)
