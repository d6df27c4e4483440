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

EXPECTED: Final[dict[str, tuple[str, ...]]] = {
    ".log, flushed": (
        "not noticed: records",
        "not noticed: records",
        "refused when read",
        "refused when read",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".log, active": (
        "harmless",
        "truncated",
        "refused",
        "truncated",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".index, flushed": (
        "harmless",
        "harmless",
        "harmless",
        "harmless",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".index, active": (
        "absent",
        "rebuilt",
        "absent",
        "harmless",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".timeindex, flushed": (
        "not noticed: by time",
        "not noticed: by time",
        "not noticed: by time",
        "not noticed: by time",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".timeindex, active": (
        "not noticed: by time",
        "rebuilt",
        "not noticed: by time",
        "rebuilt",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".txnindex, flushed": (
        "refused",
        "refused",
        "not noticed: aborted",
        "not noticed: aborted",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    ".snapshot": (
        "harmless",
        "rebuilt",
        "harmless",
        "rebuilt",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    "leader-epoch-checkpoint": (
        "refused",
        "refused",
        "refused",
        "refused",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
    "partition.metadata": (
        "refused",
        "refused",
        "refused",
        "refused",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
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
    "meta.properties": (
        "refused",
        "refused",
        "not noticed: node id",
        "not noticed: node id",
        "directory failed",
        "directory failed",
        "directory failed",
        "directory failed",
    ),
}


@pytest.mark.parametrize("file", FILES)
def test_one_fault_in_a_file_does_what_it_has_to_do(file: str) -> None:
    assert dict(zip(COLUMNS, row(file), strict=True)) == dict(zip(COLUMNS, EXPECTED[file], strict=True))
