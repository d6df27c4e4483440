"""Run `brokerside log recover`, which recovers partitions as a broker does after a crash.

Source: ours.
"""

from __future__ import annotations

import attrs
import click

from broker.cli import takes
from broker.ids import INT64_MAX, Offset
from log.cli.rework import ReworkOptions, rework_options, run_rework
from log.tools.rework_plan import Rework


@attrs.frozen(kw_only=True)
class RecoverCommand(ReworkOptions):
    """Hold the options of `brokerside log recover`: partitions, recovery point (None: the checkpoint's), marker."""

    recovery_point: int | None
    clean_shutdown: bool


@click.command("recover")
@rework_options
@click.option(
    "--recovery-point",
    type=click.IntRange(0, INT64_MAX),
    metavar="OFFSET",
    help="Offset to recover from (default: the one in recovery-point-offset-checkpoint).",
)
@click.option(
    "--clean-shutdown",
    is_flag=True,
    help="Write .kafka_cleanshutdown into the log directory, so that a broker does not recover its logs again.",
)
@takes(RecoverCommand)
def command(options: RecoverCommand) -> int:
    """Recover partitions as a broker does after a crash.

    It checks every batch from the recovery point on, cuts the log at damage, and rebuilds the indexes.

    The broker must be stopped. While one runs on the log directory, --in-place is refused.

    \b
    brokerside log recover orders-0 --out recovered
    brokerside log recover orders-0 --in-place --recovery-point 0
    """
    point = None if options.recovery_point is None else Offset(options.recovery_point)
    rework = Rework(kind="recover", now_ms=options.now_ms, recovery_point=point, clean_shutdown=options.clean_shutdown)
    return run_rework(rework, options)
