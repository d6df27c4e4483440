"""Run `brokerside log compact`, which compacts partitions once, as a broker's cleaner does.

Source: ours.
"""

from __future__ import annotations

import attrs
import click

from broker.cli import takes
from broker.units import parse_size
from log.cli.rework import ReworkOptions, rework_options, run_rework
from log.compaction import CleanerOptions
from log.compaction.offset_map import SLOT_SIZE_BYTES
from log.tools.rework_plan import Rework


@attrs.frozen(kw_only=True)
class CompactCommand(ReworkOptions):
    """Hold the options of `brokerside log compact`: partitions, active segment, and memory of the offset map."""

    include_active: bool
    map_size: str


@click.command("compact")
@rework_options
@click.option("--include-active", is_flag=True, help="Roll the active segment first, so that it is compacted too.")
@click.option("--map-size", default="128 MiB", metavar="SIZE", help="Memory for keys, 24 bytes each (default 128 MiB).")
@takes(CompactCommand)
def command(options: CompactCommand) -> int:
    """Compact partitions once, as a broker's cleaner does.

    The broker must be stopped. While one runs on the log directory, --in-place is refused.

    \b
    brokerside log compact orders-0 --out compacted
    brokerside log compact /var/lib/kafka --topic orders --in-place
    """
    cleaner = CleanerOptions(map_slot_count=parse_size(options.map_size) // SLOT_SIZE_BYTES)
    rework = Rework(kind="compact", now_ms=options.now_ms, include_active=options.include_active, cleaner=cleaner)
    return run_rework(rework, options)
