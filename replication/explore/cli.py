"""Run the command `explore`: search all histories within bounds for one that breaks the rules of replication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import click

from broker.cli import EXIT_REFUSED
from broker.cli_options import COUNT, idle_beside
from broker.errors import UsageError
from broker.ids import INT32_MAX
from broker.releases import NEWEST
from broker.wording import counted
from replication.explore.elr_model import ElrModel, ElrScope
from replication.explore.quorum_model import QuorumModel, QuorumScope
from replication.explore.search import Model, Outcome, Progress, described, search
from replication.explore.truncation_model import TruncationModel, TruncationScope
from replication.rules.switches import CURRENT, SWITCHES, Rules, rules_of, without

_MODELS: Final = ("truncation", "elr", "quorum")
_BOUNDS: Final = {
    "truncation": ("replicas", "log_size", "records", "epoch_max", "unclean_election"),
    "elr": ("records", "fences", "losses", "restarts", "shrinks"),
    "quorum": ("records", "voters", "epochs", "restarts", "lost_disks", "directory_ids"),
}
_BOUND: Final = click.IntRange(0, INT32_MAX)  # Each model holds its own bounds, which are much narrower.
_SCOPES: Final = {"truncation": TruncationScope(), "elr": ElrScope(), "quorum": QuorumScope()}


def _bound(name: str, text: str, **ranges: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option of a bound; `ranges` has the allowed values for each model that has the bound."""
    known = "; ".join(
        f"{model}: {allowed}, default {getattr(_SCOPES[model], name)}" for model, allowed in ranges.items()
    )
    return click.option(f"--{name.replace('_', '-')}", name, type=_BOUND, metavar="N", help=f"{text} ({known}).")


@click.command()
@idle_beside("--list-rules", but=("--quiet",))
@click.option(
    "--model",
    "model_name",
    type=click.Choice(_MODELS),
    default="truncation",
    help="Model to search: truncation of replicas' logs, elections from the ELR, or the controllers' quorum "
    "(default truncation).",
)
@click.option(
    "--kafka",
    "--rules",
    "release",
    metavar="RELEASE",
    default=NEWEST.name,
    help=f"Kafka release whose rules apply, 0.10.2 to {NEWEST} (default {NEWEST}).",
)
@click.option("--without", "left_out", metavar="RULE", multiple=True, help="Switch a rule off; may be repeated.")
@_bound("records", "Records that are ever written", truncation="1 to 5", elr="1 to 4", quorum="0 to 4")
@_bound("replicas", "Replicas of the partition", truncation="2 to 5")
@_bound("log_size", "Records that a log holds", truncation="1 to 5")
@_bound("epoch_max", "Greatest leader epoch; the first is 0", truncation="0 to 7")
@click.option(
    "--unclean-election",
    is_flag=True,
    default=None,
    help="Elect leaders from outside the ISR, too (truncation; default: no).",
)
@_bound("fences", "Times that a broker is fenced", elr="0 to 6")
@_bound("losses", "Restarts that lose the end of a log", elr="0 to 6")
@_bound("restarts", "Restarts that lose nothing", elr="0 to 6", quorum="0 to 4")
@_bound("shrinks", "Times that the leader drops a follower from the ISR", elr="0 to 4")
@_bound("voters", "Controllers", quorum="1 to 5")
@_bound("epochs", "Greatest epoch of the controllers", quorum="1 to 6")
@_bound("lost_disks", "Controllers that come back with an empty disk", quorum="0 to 4")
@click.option(
    "--ids-alone",
    "directory_ids",
    flag_value=False,
    default=None,
    help="Identify controllers by their id alone, without the directory id of KIP-853 (quorum; default: by both).",
)
@click.option("--states", type=COUNT, metavar="COUNT", help="Stop the search after COUNT states (default: no limit).")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--list-rules", is_flag=True, help="List the rules that --without takes, and exit.")
def explore(
    model_name: str,
    release: str,
    left_out: tuple[str, ...],
    states: int | None,
    quiet: bool,
    list_rules: bool,
    **bounds: int | bool | None,
) -> int:
    """Search every history within bounds for one in which a committed record is lost.

    The rules are those of current Kafka or of a release (--rules); --without switches single rules off.

    There are three models. "truncation": replicas truncate their logs while orders to lead and to follow arrive late.
    "elr": brokers are fenced, restart with the end of their logs lost, and are elected from the ELR. "quorum":
    controllers vote, fail and lose their disks; this model has no rules to switch off.

    \b
    Examples:
      brokerside explore --rules 0.10.2
      brokerside explore --model elr --without strict_min_isr
      brokerside explore --model elr --records 2
      brokerside explore --model quorum --ids-alone
    """
    if list_rules:
        for name, switch in SWITCHES.items():
            click.echo(f"{name:<40} since {switch.since:<7} {switch.source}: without it {switch.without}")
        return 0
    model = _model(model_name, without(rules_of(release), *left_out), bounds)
    return _report(model, _searched(model, states, quiet=quiet))


def _model(name: str, rules: Rules, bounds: dict[str, int | bool | None]) -> Model:
    given: dict[str, Any] = {key: value for key, value in bounds.items() if value is not None}
    foreign = [key for key in given if key not in _BOUNDS[name]]
    if foreign:
        option = foreign[0].replace("_", "-")
        raise UsageError(f"--{option} is not a bound of the model {name!r}; see --help")
    if name == "quorum":
        if rules != CURRENT:
            raise UsageError("the model 'quorum' has no rules to leave out; --ids-alone is what it was before KIP-853")
        return QuorumModel(attrs.evolve(QuorumScope(), **given))
    if name == "elr":
        return ElrModel(attrs.evolve(ElrScope(), **given), rules)
    return TruncationModel(attrs.evolve(TruncationScope(), **given), rules)


def _searched(model: Model, states: int | None, *, quiet: bool) -> Outcome:
    def on_level(progress: Progress) -> None:
        steps = "step: " if progress.depth == 1 else "steps:"
        click.echo(f"after {progress.depth:>2} {steps} {counted(progress.state_count, 'state'):>16}", err=True)

    return search(model, state_count_max=states, on_level=None if quiet else on_level)


def _report(model: Model, outcome: Outcome) -> int:
    states = counted(outcome.state_count, "state")
    if outcome.fault is not None:
        click.echo(f"Broken after {counted(outcome.depth, 'step')}, found among {states}:")
        for line in described(model, outcome.history):
            click.echo(line)
        click.echo(outcome.fault)
        click.echo(model.state_text(outcome.history[-1]))
        return EXIT_REFUSED
    if not outcome.is_complete:
        click.echo(f"Not broken in {states}; the search was cut short at depth {outcome.depth}.")
        return EXIT_REFUSED
    click.echo(
        f"Holds in all {states} ({outcome.kept_count:,} but for the brokers' names); "
        f"the last is {counted(outcome.depth, 'step')} away."
    )
    return 0
