"""Define the options, the printed plan and the confirmation of `brokerside log compact` and `recover`.

Constraints: without `--out` or `--in-place` nothing is done. Files are changed in place only after the plan was shown
and confirmed, and never while a broker runs on the log directory.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from broker.cli import EXIT_REFUSED, EXIT_USAGE
from broker.cli_options import idle_without
from broker.config import Scope, lookup, parse
from broker.errors import CorruptDataError, UsageError
from broker.units import TimeMs
from log.cli.options import NOW, PATHS, QUIET, check_out, time_ms
from log.cli.output import print_error, print_lines, progress
from log.log_config import LogConfig
from log.tools.rework_plan import (
    Plan,
    Rework,
    brokers_kept_out,
    check_clean_shutdown,
    check_copies,
    plan_lines,
    run_plans,
)
from log.tools.sources import expand_all
from log.tools.topic_settings import unsaid_settings


@attrs.frozen(kw_only=True)
class ReworkOptions:
    """Hold the options of `compact` and `recover`: partitions, output directory, topic settings, current time."""

    paths: tuple[Path, ...]
    out: Path | None
    in_place: bool
    yes: bool
    topics: tuple[str, ...]
    settings: tuple[str, ...]
    now_ms: TimeMs = attrs.field(converter=time_ms)
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
        NOW,
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
    rework = attrs.evolve(rework, config=_config(options.settings), out=out, topics=frozenset(options.topics))
    if out is not None:
        check_out(options.paths, out)
    plans = [plan for folder in expand_all(options.paths) for plan in Plan.of(folder, rework)]
    if not plans:
        raise UsageError("no partition's directory is named that the options select")
    if out is not None:
        check_copies(plans, out)
    check_clean_shutdown(plans, rework)
    for line in _warnings(plans, rework):
        print_error(f"warning: {line}")
    with brokers_kept_out(plans, rework):
        for plan in plans:
            print_lines(plan_lines(plan, rework))
        if options.in_place and not options.yes and not click.confirm("Change these files?", err=True):
            return EXIT_USAGE
        with progress("Working", sum(plan.size_bytes for plan in plans), quiet=options.quiet) as advance:
            try:
                print_lines(run_plans(plans, rework, advance))
            except CorruptDataError as damage:
                print_error(str(damage))
                return EXIT_REFUSED
    return 0


def _warnings(plans: Sequence[Plan], rework: Rework) -> Iterator[str]:
    """Yield the settings that recovery would need, for each log directory."""
    if rework.kind == "recover":
        for log_dir in sorted({plan.log_dir for plan in plans}):
            topics = sorted({plan.topic for plan in plans if plan.log_dir == log_dir})
            yield from unsaid_settings(log_dir, topics, rework.config)


def _config(settings: Sequence[str]) -> LogConfig:
    values = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--config has {text!r}; the form is NAME=VALUE, such as segment.bytes=1048576")
        values[name] = parse(lookup(name, Scope.TOPIC), value)
    return LogConfig.parse(values)
