"""Golden cases of log storage: which runner answers which kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.golden.log import batches, checkpoints, logdir, programs, recovery, segments
from tests.golden.log.cases import LogRunner

LOG_RUNNERS: Final[Mapping[str, LogRunner]] = {
    "batches": batches.run,
    "bitflips": batches.run,
    "checkpoints": checkpoints.run,
    "log": programs.run,
    "logdir": logdir.run,
    "recovery": recovery.run,
    "segment": segments.run,
    "truncate": recovery.run_truncations,
}
