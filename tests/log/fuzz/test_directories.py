"""Fuzzing of whole log directories by the names in them: directories of partitions, and the files in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import BrokersideError
from broker.ids import Offset
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.log_dir import LogDir, LogDirOptions
from log.record import Record
from tests.log.fuzz.mutator import mutated
from tests.log.made import NOW, config
from tests.support.disk_image import DiskImage, storage_of

pytestmark = pytest.mark.usefixtures("input_count")

NAMES_AT_ONCE: Final = 50
"""Names that are in one directory together; opening it costs much more than a name."""

FILES: Final = (
    b"00000000000000000000.log",
    b"00000000000000000001.index",
    b"00000000000000000001.timeindex",
    b"00000000000000000001.txnindex",
    b"00000000000000000001.snapshot",
    b"00000000000000000002.log.cleaned",
    b"00000000000000000000.log.swap",
    b"00000000000000000000.index.swap",
    b"09223372036854775807.timeindex.deleted",
    b"leader-epoch-checkpoint",
    b"partition.metadata",
)
BATCH: Final = build_batch(BatchSpec(), [Record(Offset(0), NOW, b"k", b"v")])
OPTIONS: Final = LogDirOptions(config=config())


def test_a_directory_of_damaged_file_names_is_opened_or_refused(input_count: int) -> None:
    names: list[str] = []
    opened = refused = 0
    for damaged in mutated(FILES, input_count, seed=1):
        names.append(name_of(damaged))
        if len(names) == NAMES_AT_ONCE:
            is_open = opens(names, number=opened + refused)
            opened, refused = opened + is_open, refused + (not is_open)
            names.clear()
    assert (opened + refused) * NAMES_AT_ONCE == input_count
    assert opened > 0


def name_of(damaged: bytearray) -> str:
    """Return a name that a file can have."""
    name = damaged.decode("latin-1").replace("/", "_").replace("\0", "") or "empty"
    return "dots" if name in (".", "..") else name


def opens(names: Sequence[str], *, number: int) -> bool:
    """Open a directory with files of these names, closed cleanly or not, and tell whether that was not refused."""
    contents = (b"", BATCH, BATCH[:30], bytes(24))
    files = {f"events-0/{name}": contents[place % len(contents)] for place, name in enumerate(names)}
    for own in ("leader-epoch-checkpoint", "partition.metadata"):
        files.pop(f"events-0/{own}", None)
    if number % 2:
        files[".kafka_cleanshutdown"] = b""
    storage = storage_of(ManualClock(NOW), DiskImage(files, frozenset({"events-0"})))
    kept = set(storage.list("events-0"))
    try:
        log_dir = LogDir.open(storage, OPTIONS, now_ms=NOW, entropy=SplitMix64(1))
    except BrokersideError:
        return False
    except Exception as finding:
        raise AssertionError(f"names {sorted(names)}: {type(finding).__name__}: {finding}") from finding
    (log,) = log_dir.logs.values()
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases))
    # What is no file of a log stays as it is.
    assert {name for name in kept if "." not in name} <= set(storage.list("events-0"))
    return True
