"""Define the options that several commands of `brokerside log` share.

Source: ours.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from broker.errors import UsageError
from broker.ids import INT64_MAX
from broker.units import TimeMs

JOBS_MAX = 256
PATHS = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH..."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line instead of text.")
QUIET = click.option("--quiet", is_flag=True, help="Show no progress bar.")
JOBS = click.option(
    "--jobs",
    type=click.IntRange(1, JOBS_MAX),
    metavar="N",
    help="Processes that share the work (default: one a core); the output is the same for any number.",
)
KEEP_GOING = click.option("--keep-going", is_flag=True, help="Skip damaged bytes and read the rest.")
NOW = click.option(
    "--now-ms",
    type=click.IntRange(0, INT64_MAX),
    metavar="MS",
    help="Current time in milliseconds since 1970 (default: this machine's clock).",
)


def time_ms(now_ms: int | None) -> TimeMs:
    """Return the time given with `--now-ms`, or the time of this machine's clock if the option is not given."""
    return TimeMs(time.time_ns() // 1_000_000 if now_ms is None else now_ms)


def check_out(paths: Sequence[Path], out: Path) -> None:
    """Raise UsageError if the output directory `out` lies in one of the directories that the command reads."""
    for path in paths:
        if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
            raise UsageError(f"--out {out} lies in {path}, which is only read")
