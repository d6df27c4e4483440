"""Define options shared by several commands, with one name, range and help text each.

Source: ours; click.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click
from click.core import ParameterSource

from broker.cli import Command, FiniteRange
from broker.errors import UsageError
from broker.ids import INT32_MAX, INT64_MAX

COUNT: Final = click.IntRange(1, INT32_MAX)
"""The type of an option that counts things, of which there is at least one."""

JAVA_SEED: Final = click.IntRange(-INT64_MAX - 1, INT64_MAX)
"""The type of a seed of java.util.Random, which any 64 bits are."""

RUN_COUNT_MAX: Final = 1_000_000  # Runs of a simulation; a million take days.


def seed_option() -> Callable[[Command], Command]:
    """Return the option `--seed N`, 0 unless given."""
    text = "Seed of the random generator; the same seed gives the same run (default 0)."
    return click.option("--seed", type=click.IntRange(0, INT64_MAX), default=0, metavar="N", help=text)


def seeds_option() -> Callable[[Command], Command]:
    """Return the option `--seeds COUNT`, one run unless given."""
    text = "Run COUNT seeds from --seed on, one line for each broken one (default 1)."
    return click.option("--seeds", type=click.IntRange(1, RUN_COUNT_MAX), default=1, metavar="COUNT", help=text)


def check_seeds(seed: int, seeds: int) -> None:
    """Raise UsageError unless the last of `seeds` seeds from `seed` on is a seed, too."""
    if seed + seeds - 1 > INT64_MAX:
        raise UsageError(f"--seeds {seeds} from --seed {seed} on goes beyond the largest seed, {INT64_MAX}")


def minutes_option(minutes_min: float, minutes_max: float) -> Callable[[Command], Command]:
    """Return the option `--minutes M` of a simulated cluster, one minute unless given."""
    text = "Length of the run in simulated minutes (default 1)."
    kind = FiniteRange(minutes_min, minutes_max)
    return click.option("--minutes", type=kind, default=1.0, metavar="M", help=text)


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


def printing_option(name: str, lines: Callable[[], Iterable[str]], text: str) -> Callable[[Command], Command]:
    """Return a flag that prints lines and ends the command, whatever else is given."""

    def show(context: click.Context, _option: click.Parameter, is_given: bool) -> None:  # As click calls.
        if is_given:
            for line in lines():
                click.echo(line)
            context.exit()

    return click.option(name, is_flag=True, is_eager=True, expose_value=False, callback=show, help=text)


def idle_beside(
    leader: str, *idle: str, but: tuple[str, ...] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that refuses options that change nothing beside the option `leader`.

    They are those named `idle`, or all of the command's options except `but` if none is named; two of them
    given together raise UsageError, which names both.
    """

    def check(given: Mapping[str, str]) -> None:
        if leader not in given:
            return
        for option in idle or [each for each in given.values() if each not in (given[leader], *but)]:
            if option in given:
                raise UsageError(f"{option} has no effect with {leader}; leave out one of the two")

    return _checked(check)


def idle_without(leader: str, *idle: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that raises UsageError for the options named `idle` where `leader` is not given."""

    def check(given: Mapping[str, str]) -> None:
        for option in idle:
            if option in given and leader not in given:
                raise UsageError(f"{option} has no effect without {leader}; give both, or neither")

    return _checked(check)


def _checked(check: Callable[[Mapping[str, str]], None]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        # Click passes the command's own options, whatever they are.
        def call(**given: Any) -> int:
            check(_given(click.get_current_context()))
            return command(**given)

        return call

    return decorate


def _given(context: click.Context) -> dict[str, str]:
    """Return the options of the command line: each name that stands for one, and the name to show it by."""
    given: dict[str, str] = {}
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if isinstance(option, click.Option) and is_given:
            is_off = option.secondary_opts and context.params[option.name or ""] is False
            names = option.secondary_opts if is_off else option.opts
            given |= dict.fromkeys(names, names[0])
    return given


def live_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--bootstrap-server` and `--command-config`, which name a live cluster, to a command."""
    checked = idle_without("--bootstrap-server", "--command-config")(command)
    text = "Properties file of Kafka's tools for --bootstrap-server: security.protocol, sasl.jaas.config and others."
    checked = click.option("--command-config", metavar="FILE", help=text)(checked)
    text = "Ask this live cluster, read-only, in the place of a file (install the extra live). Several with commas."
    return click.option("--bootstrap-server", metavar="HOST:PORT", help=text)(checked)
