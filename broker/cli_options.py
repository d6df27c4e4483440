"""Define the options that several commands share, so that they have one name, range and help text.

What it decides: how --seed, --seeds, --minutes, --chart and the shapes of a run (such as --quiet) are given.

Constraints: the shapes of a run exclude each other; two of them are refused, not overruled.

Source: ours; click.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from broker.cli import Command, FiniteRange
from broker.errors import UsageError
from broker.ids import INT64_MAX


def seed_option() -> Callable[[Command], Command]:
    """Return the option `--seed N`, 0 unless given."""
    text = "Seed of the random generator; the same seed gives the same run (default 0)."
    return click.option("--seed", type=click.IntRange(0, INT64_MAX), default=0, metavar="N", help=text)


def seeds_option() -> Callable[[Command], Command]:
    """Return the option `--seeds COUNT`, one run unless given."""
    text = "Run COUNT seeds from --seed on, one line for each broken one (default 1)."
    return click.option("--seeds", type=click.IntRange(1), default=1, metavar="COUNT", help=text)


def minutes_option(minutes_min: float, minutes_max: float) -> Callable[[Command], Command]:
    """Return the option `--minutes M` of a simulated cluster, one minute unless given."""
    text = "Length of the run in simulated minutes (default 1)."
    kind = FiniteRange(minutes_min, minutes_max)
    return click.option("--minutes", type=kind, default=1.0, metavar="M", help=text)


def chart_option(text: str) -> Callable[[Command], Command]:
    """Return the option `--chart FILE` with the help `text`; `broker.cli.check_chart` checks the file."""
    return click.option("--chart", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help=text)


def shape_options(shapes: Mapping[str, str]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that adds a flag for each shape of a run: name and help, the default first.

    The command receives the name of the chosen one as `kind`; two of them raise UsageError.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        # Click passes the command's own options too, whatever they are.
        def call(**given: Any) -> int:
            chosen = [name for name in shapes if given.pop(name)]
            if len(chosen) > 1:
                named = " and ".join(f"--{name}" for name in chosen)
                raise UsageError(f"{named} are different runs; give one of them")
            return command(kind=chosen[0] if chosen else next(iter(shapes)), **given)

        decorated: Callable[..., int] = call
        for name, text in reversed(list(shapes.items())):
            decorated = click.option(f"--{name}", is_flag=True, help=text)(decorated)
        return decorated

    return decorate
