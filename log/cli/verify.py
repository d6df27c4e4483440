"""Run `brokerside log verify`, which checks whether files are damaged.

Source: ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs
import click

from broker.cli import EXIT_REFUSED, takes
from broker.wording import counted
from broker.workers import in_order
from log.cli.output import JOBS, JSON, KEEP_GOING, PATHS, QUIET, file_cost, print_lines, progress
from log.tools.findings import Checked, passed_over
from log.tools.sources import expand_all
from log.tools.verify import Part, folder_parts, in_sequence, verify_part


@attrs.frozen(kw_only=True)
class VerifyCommand:
    """Hold the options of `brokerside log verify`: the files to check and the form of the output."""

    paths: tuple[Path, ...]
    keep_going: bool
    jobs: int | None
    as_json: bool
    quiet: bool


@click.command("verify")
@PATHS
@KEEP_GOING
@JOBS
@JSON
@QUIET
@takes(VerifyCommand)
def verify_command(options: VerifyCommand) -> int:
    """Check whether files are damaged; exit with status 1 if any is.

    It checks checksums, structure, order, indexes and checkpoints. Of batches that stand for far more than their bytes
    it checks the checksum alone, and says so; that is no damage.

    \b
    brokerside log verify orders-0
    brokerside log verify --keep-going --json /var/lib/kafka
    """
    parts = [part for folder in expand_all(options.paths) for part in folder_parts(folder)]
    total, damage_count = Checked(), 0
    with progress("Verifying", sum(map(_cost, parts)), quiet=options.quiet) as advance:
        work = partial(verify_part, keep_going=options.keep_going)
        for report in in_sequence(parts, in_order(work, parts, cost=_cost, jobs=options.jobs, advance=advance)):
            total += report.checked
            damage_count += len(report.findings)
            print_lines(
                json.dumps(attrs.asdict(finding)) if options.as_json else finding.line()
                for finding in (*report.findings, *report.limits)
            )
    if options.as_json:
        print_lines([json.dumps({"damages": damage_count, **attrs.asdict(total)})])
    else:
        print_lines(_verdict(total, damage_count))
    return EXIT_REFUSED if damage_count else 0


def _cost(part: Part) -> int:
    return sum(map(file_cost, part.files))


def _verdict(total: Checked, damage_count: int) -> Iterator[str]:
    batches, records = counted(total.batch_count, "batch", "batches"), counted(total.record_count, "record")
    damages = counted(damage_count, "damaged place") if damage_count else "no damage"
    yield f"{counted(total.file_count, 'file')}, {batches}, {records}: {damages}"
    if total.skipped_size_bytes:
        yield passed_over(total.skipped_size_bytes, total.skipped_batch_count)
