"""Files that are no dumps, of every kind that a folder of hundreds may hold, and what a report says of each."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.spark_analysis.test_kernels import DESCRIBE

GOOD: Final = DESCRIBE.format(1, "1,2").encode()
GOOD_ROWS: Final = 2
"""Rows of `GOOD`: a topic and a partition."""

PACKED: Final = gzip.compress(GOOD * 50)


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    path.mkdir()


def _holding(data: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(data)

    return make


UNUSABLE: Final[dict[str, tuple[Callable[[Path], None], str]]] = {
    "damaged gzip": (_holding(PACKED[:30] + b"\xff" * 20 + PACKED[50:]), ": the compressed data is damaged: "),
    "gzip cut off": (_holding(PACKED[:-20]), ": the compressed data is damaged: "),
    "zstandard cut off": (_holding(b"\x28\xb5\x2f\xfd\x00"), ": the compressed data is damaged: "),
    "text of something else": (_holding(b"hello world: 1\n"), ":1: not a dump of a known format; "),
    "list of names": (_holding(b"orders\npayments\n"), ":1: not a dump of a known format but a list of names, "),
    "bytes": (_holding(bytes(range(256)) * 300), ":1: not a dump of a known format; "),
    "empty": (_holding(b""), ": the input is empty"),
    "JSON of something else": (_holding(b'{"a": 1}'), ":1: a JSON object of no known format; "),
    "JSON cut off": (_holding(b'{"version":1,"partitions":[{"topic":"t","par'), ":1: the JSON is damaged at column "),
    "answer with an error": (_holding(b'{"errorMessage": "not ready"}'), ": Cruise Control answered with an error"),
    "link to itself": (_link_to_itself, ": cannot be read: too many levels of symbolic links"),
    "folder without a log": (_folder, ": holds no segment and no snapshot of a metadata log"),
}
"""How each is made at a path, and what follows the path in the reason."""
