"""The fault matrix: for each file and fault, what a broker has to do, which is what Kafka's does.

- refused: the directory is not opened, and one error names the file; "when read": opening looks at the ends only.
- truncated: the log ends before the damage. rebuilt, removed: from what else is known. harmless: nothing differs.
- counts as empty: as if the checkpoint were not there; recovery begins at the start.
- directory failed: an error that names the file ends the work at its first fault; all that was flushed is there later.
- not noticed: no checksum covers the file (or, of a log, nobody asks before a consumer does), and answers differ.
- not done, absent: a broker never does that, or there is nothing to be damaged then.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.log.crash.matrix import COLUMNS, FILES, row

FAILED: Final = ("directory failed",) * 4
EXPECTED: Final[dict[str, tuple[str, ...]]] = {
    ".log, flushed": (
        "not noticed: records",
        "not noticed: records",
        "refused when read",
        "refused when read",
        *FAILED,
    ),
    ".log, active": ("harmless", "truncated", "refused", "truncated", *FAILED),
    ".index, flushed": ("harmless", "harmless", "harmless", "harmless", *FAILED),
    ".index, active": ("absent", "rebuilt", "absent", "harmless", *FAILED),
    ".timeindex, flushed": (
        "not noticed: by time",
        "not noticed: by time",
        "not noticed: by time",
        "not noticed: by time",
        *FAILED,
    ),
    ".timeindex, active": ("not noticed: by time", "rebuilt", "not noticed: by time", "rebuilt", *FAILED),
    ".txnindex, flushed": ("refused", "refused", "not noticed: aborted", "not noticed: aborted", *FAILED),
    ".snapshot": ("harmless", "rebuilt", "harmless", "rebuilt", *FAILED),
    "leader-epoch-checkpoint": ("refused", "refused", "refused", "refused", *FAILED),
    "partition.metadata": ("refused", "refused", "refused", "refused", *FAILED),
    "recovery-point-offset-checkpoint": (
        "harmless",
        "harmless",
        "counts as empty",
        "counts as empty",
        "counts as empty",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    "log-start-offset-checkpoint": (
        "not noticed: by time, start offset",
        "not noticed: by time, epochs, start offset",
        "counts as empty",
        "counts as empty",
        "counts as empty",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    "replication-offset-checkpoint": (
        "not noticed: high watermark",
        "not noticed: high watermark",
        "counts as empty",
        "counts as empty",
        "counts as empty",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".kafka_cleanshutdown": (
        "removed",
        "absent",
        "removed",
        "absent",
        "not done",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    "meta.properties": ("refused", "refused", "not noticed: node id", "not noticed: node id", *FAILED),
}


@pytest.mark.deep
@pytest.mark.parametrize("file", FILES)
def test_one_fault_in_a_file_does_what_it_has_to_do(file: str) -> None:
    assert dict(zip(COLUMNS, row(file), strict=True)) == dict(zip(COLUMNS, EXPECTED[file], strict=True))
