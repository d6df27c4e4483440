"""Turn the operating system's errors into errors of `log.errors`.

What it decides: which error a refused call is: MissingFileError where there is no such file or directory, else
StorageError; of either the message names the operation and our path, not the system's.

Example: with Refusals("open", "topic-0/a"): os.open(...) raises MissingFileError: "cannot open topic-0/a: …".

Source: ours.
"""

from __future__ import annotations

from log.errors import MissingFileError, StorageError


class Refusals:
    """Turn OSError into MissingFileError or StorageError, as a context manager cheap enough for small writes."""

    __slots__ = ("_operation", "_path")

    def __init__(self, operation: str, path: str) -> None:
        self._operation = operation
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, refusal: BaseException | None, trace: object) -> None:
        if isinstance(refusal, FileNotFoundError):
            raise MissingFileError(self._operation, self._path, "no such file or directory") from None
        if isinstance(refusal, OSError):
            raise refused(self._operation, self._path, refusal) from refusal


def refused(operation: str, path: str, refusal: OSError) -> StorageError:
    """Return the StorageError for an OSError other than a missing file."""
    return StorageError(operation, path, refusal.strerror or str(refusal))
