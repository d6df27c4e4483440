"""Define the options, the printed plan and the confirmation of `brokerside log compact` and `recover`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import click

from broker.cli import EXIT_REFUSED, EXIT_USAGE, kafka_option, takes
from broker.cli_options import idle_without
from broker.config import OLDEST_SETTINGS, Scope, lookup, parse
from broker.errors import CorruptDataError, UsageError
from broker.ids import INT64_MAX, Offset
from broker.releases import Release
from broker.units import TimeMs, parse_size
from broker.workers import Advance, Work, Workers
from log.cli.output import JOBS, NOW, PATHS, QUIET, check_out, folder_cost, print_error, print_lines, progress, time_ms
from log.compaction import CleanerOptions
from log.compaction.offset_map import SLOT_SIZE_BYTES
from log.log_config import LogConfig
from log.tools.open_log import NotCompactableError
from log.tools.rework import Rework
from log.tools.rework_plan import (
    Plan,
    brokers_kept_out,
    check_copies,
    finish,
    plan_lines,
    run_plan,
    with_last_shutdowns,
)
from log.tools.sources import expand_all

_Lines: TypeAlias = Sequence[str] | CorruptDataError


@attrs.frozen(kw_only=True)
class ReworkOptions:
    """Hold the options of `compact` and `recover`: partitions, output directory, topic settings, current time."""

    paths: tuple[Path, ...]
    out: Path | None
    in_place: bool
    yes: bool
    topics: tuple[str, ...]
    settings: tuple[str, ...]
    release: Release
    now_ms: TimeMs = attrs.field(converter=time_ms)
    jobs: int | None
    quiet: bool


def rework_options(command: Callable[..., int]) -> Callable[..., Any]:
    """Add the options for the fields of `ReworkOptions` to a command."""
    options = (
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Work on a copy, made in this directory.",
        ),
        click.option("--in-place", is_flag=True, help="Change PATH itself, after showing the plan and asking."),
        click.option("--yes", is_flag=True, help="Do not ask before changing files --in-place."),
        click.option(
            "--topic",
            "topics",
            multiple=True,
            metavar="TOPIC",
            help="Take only this topic of a log directory; repeatable.",
        ),
        click.option(
            "--config",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set one of Kafka's topic settings; repeatable (default: Kafka's defaults).",
        ),
        kafka_option(),
        NOW,
        JOBS,
        QUIET,
    )
    decorated: Callable[..., Any] = idle_without("--in-place", "--yes")(command)
    for option in reversed(options):  # The help lists first what is applied last.
        decorated = option(decorated)
    return PATHS(decorated)


def run_rework(rework: Rework, options: ReworkOptions) -> int:
    """Print the plan, carry it out once the user confirms it, and return the exit status."""
    out = options.out
    if (out is None) == (not options.in_place):
        raise UsageError("say where to work: --out DIR for a copy, or --in-place, one of the two")
    config = _config(options.settings, options.release)
    rework = attrs.evolve(rework, config=config, out=out, topics=frozenset(options.topics))
    if out is not None:
        check_out(options.paths, out)
    plans = [plan for folder in expand_all(options.paths) for plan in Plan.of(folder, rework)]
    if not plans:
        raise UsageError("no partition's directory is named that the options select")
    if out is not None:
        check_copies(plans, out)
    with brokers_kept_out(plans, rework), Workers(options.jobs) as workers:
        plans = with_last_shutdowns(plans, print_error)
        refusals = _each(partial(_planned, rework=rework), plans, "Checking", workers, quiet=options.quiet)
        plans = [plan for plan, refusal in zip(plans, refusals, strict=True) if refusal is None]
        refused = len(plans) < len(refusals)
        if not plans:
            return EXIT_REFUSED
        if options.in_place and not options.yes and not click.confirm("Change these files?", err=True):
            return EXIT_USAGE
        try:
            damages = _each(partial(_carried_out, rework=rework), plans, "Working", workers, quiet=options.quiet)
        finally:
            finish(plans, rework)
    return EXIT_REFUSED if refused or any(damages) else 0


def _each(
    work: Work[Plan, _Lines], plans: Sequence[Plan], title: str, workers: Workers, *, quiet: bool
) -> list[CorruptDataError | None]:
    """Print the lines of each plan as they come; return for each plan the damage that came instead, or None."""
    damages: list[CorruptDataError | None] = []
    with progress(title, sum(map(_cost, plans)), quiet=quiet) as advance:
        for lines in workers.in_order(work, plans, cost=_cost, advance=advance):
            if isinstance(lines, CorruptDataError):
                damages.append(lines)
                print_error(str(lines))
            else:
                damages.append(None)
                print_lines(lines)
    return damages


def _planned(plan: Plan, _: Advance, *, rework: Rework) -> _Lines:
    try:
        return list(plan_lines(plan, rework))
    except NotCompactableError as damage:
        return damage


def _carried_out(plan: Plan, advance: Advance, *, rework: Rework) -> _Lines:
    try:
        return list(run_plan(plan, rework, advance))
    except CorruptDataError as damage:
        return damage


def _cost(plan: Plan) -> int:
    return folder_cost(plan.folder)


def _config(settings: Sequence[str], release: Release) -> LogConfig:
    values = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--config has {text!r}; the form is NAME=VALUE, such as segment.bytes=1048576")
        values[name] = parse(lookup(name, Scope.TOPIC, max(release, OLDEST_SETTINGS)), value)
    return LogConfig.parse(values, release)


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
def compact_command(options: CompactCommand) -> int:
    """Compact partitions once, as a broker's cleaner does.

    The broker must be stopped. While one runs on the log directory, --in-place is refused.

    \b
    brokerside log compact orders-0 --out compacted
    brokerside log compact /var/lib/kafka --topic orders --in-place
    """
    cleaner = CleanerOptions(map_slot_count=parse_size(options.map_size) // SLOT_SIZE_BYTES)
    rework = Rework(kind="compact", now_ms=options.now_ms, include_active=options.include_active, cleaner=cleaner)
    return run_rework(rework, options)


@attrs.frozen(kw_only=True)
class RecoverCommand(ReworkOptions):
    """Hold the options of `brokerside log recover`: partitions, recovery point (None: the checkpoint's)."""

    recovery_point: int | None


@click.command("recover")
@rework_options
@click.option(
    "--recovery-point",
    type=click.IntRange(0, INT64_MAX),
    metavar="OFFSET",
    help="Offset to recover from (default: the one in recovery-point-offset-checkpoint).",
)
@takes(RecoverCommand)
def recover_command(options: RecoverCommand) -> int:
    """Recover partitions as a broker does after a crash.

    It checks every batch from the recovery point on, cuts the log at damage, and rebuilds the indexes.

    The broker must be stopped. While one runs on the log directory, --in-place is refused.

    \b
    brokerside log recover orders-0 --out recovered
    brokerside log recover orders-0 --in-place --recovery-point 0
    """
    point = None if options.recovery_point is None else Offset(options.recovery_point)
    return run_rework(Rework(kind="recover", now_ms=options.now_ms, recovery_point=point), options)
