"""Name a partition's files, and read offsets and kinds from their names.

Source: org.apache.kafka.storage.internals.log.LogFileUtils, 4.3.1.
"""

from __future__ import annotations

from typing import Final

from broker.ids import Offset

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
PRODUCER_SNAPSHOT: Final = ".snapshot"

DELETED: Final = ".deleted"
"""The file waits for file.delete.delay.ms, so that whoever still reads it can end."""
CLEANED: Final = ".cleaned"
"""The file is being written by the cleaner or by a split."""
SWAP: Final = ".swap"
"""The file is whole and about to take the place of others."""

OFFSET_DIGITS: Final = 20
INDEX_FILES: Final = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX)


def file_name(base_offset: Offset, kind: str, stage: str = "") -> str:
    """Return the name of the file of `kind` of the segment at `base_offset`, at `stage` ("" is in use)."""
    assert base_offset >= 0, base_offset
    return f"{base_offset:020d}{kind}{stage}"


def base_offset_of(name: str) -> Offset | None:
    """Return the base offset at the start of a file name; None without digits and a dot."""
    digits, dot, _ = name.partition(".")
    return Offset(int(digits)) if dot and digits.isascii() and digits.isdecimal() and len(digits) <= 20 else None


def kind_of(name: str) -> str:
    """Return the extension of a file name with its stage, such as ".log" or ".index.swap"."""
    return name[name.find(".") :] if "." in name else ""
