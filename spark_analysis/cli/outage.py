"""Define `brokerside outage`, which says what losing brokers or racks does before it happens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import click
import pyarrow as pa

from broker.cli import EXIT_REFUSED, printable, takes
from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.wording import first_of
from placement.cli import parse_broker_list
from placement.outages.copysets import Copysets, copysets, copysets_table
from placement.outages.fatal import FatalSets, fatal_sets, fatal_table
from placement.outages.look_ahead import PAIR, RACK, RACK_AND_BROKER, SINGLE, LookAhead, Sweep, look_ahead, sweep_table
from placement.outages.lost import Outage, affected_table, leaders_table, outage, states_table
from placement.outages.returning import returns_table
from spark_analysis.cli.cluster_inputs import (
    ClusterOptions,
    answer_options,
    cluster_options,
    give_answer,
    read_cluster,
)
from spark_analysis.cli.commands import PROGRAM
from spark_analysis.cli.outage_text import look_ahead_shown, lost_shown, states_json, worst_rows
from spark_analysis.report.figures import plural

LOST: Final = "lost"
GATE_SCOPES: Final = ("broker", "pair", "rack", "rack-and-broker", LOST)
GATE_STATES: Final = ("at-risk", "leaderless", "under-min-isr", "no-replica")
_SCOPE_OF_GATE: Final = dict(zip(GATE_SCOPES, (SINGLE, PAIR, RACK, RACK_AND_BROKER), strict=False))
_RACK: Final = "rack="


@attrs.frozen(kw_only=True)
class OutageOptions(ClusterOptions):
    """Hold the options of `brokerside outage`."""

    dump: str | None
    lose: tuple[str, ...]
    fail_on: str | None


@attrs.frozen
class Gate:
    """Fail when the loss of a set of this scope puts more partitions into this state."""

    scope: str
    state: str

    @property
    def count_name(self) -> str:
        """Return the name of the count that the gate looks at."""
        return f"{self.state.replace('-', '_')}_count"


@click.command("outage")
@click.argument("dump", metavar="[DUMP]", required=False)
@click.option(
    "--lose",
    multiple=True,
    metavar="IDS|rack=NAME",
    help="Brokers that are lost: ids and ranges such as 3,4 or 0-2, or all of a rack. May be repeated; all are lost "
    "together. Without it every broker, pair, rack, and rack with one more broker is looked at.",
)
@click.option(
    "--fail-on",
    metavar="GATES",
    help=f"Exit with status 1 when losing one of these adds a partition to the state; a list with commas of "
    f"SCOPE[:STATE], SCOPE one of {', '.join(GATE_SCOPES)}, STATE one of {', '.join(GATE_STATES)} (default: at-risk).",
)
@cluster_options
@answer_options
@takes(OutageOptions)
def outage_command(options: OutageOptions) -> int:
    """Show what losing brokers or racks does: leaders, min-ISR, data at risk, and who takes over.

    \b
    Counts are those of the cluster after the outage; what is wrong already is
    counted and listed first. A partition is at risk when no live replica has
    every committed record. --out lists all of them.
    brokerside outage prod.txt --racks racks.csv
    brokerside outage prod.txt --lose 3,4 --lose rack=b --json
    """
    gates = () if options.fail_on is None else tuple(gates_of(options.fail_on, with_lose=bool(options.lose)))
    with read_cluster(options.dump, options) as cluster:
        view = cluster.view
        failed = (_one_outage if options.lose else _every_outage)(view, options, gates)
    for sentence in failed:
        click.echo(f"{PROGRAM}: failed: {printable(sentence)}", err=True)
    return EXIT_REFUSED if failed else 0


def _one_outage(view: ClusterView, options: OutageOptions, gates: Sequence[Gate]) -> list[str]:
    found = outage(view, lost_brokers(view, options.lose))
    give_answer(
        options,
        kind="outage",
        summary=summary_of_lost(view, found),
        tables={
            "affected_partitions": affected_table(view, found),
            "leaders": leaders_table(view, found),
            "partitions_at_risk": returns_table(view, found.coming_back),
            "states": states_table(view, found),
        },
        shown=tuple(lost_shown(view, found)),
        views=(view,),
    )
    now, then = attrs.asdict(found.now), attrs.asdict(found.counts)
    return [
        f"losing {_names(found.lost)}: {_of_state(gate, now[gate.count_name], then[gate.count_name])}"
        for gate in gates
        if _is_worse(now[gate.count_name], then[gate.count_name])
    ]


def _every_outage(view: ClusterView, options: OutageOptions, gates: Sequence[Gate]) -> list[str]:
    found, fatal, copies, nothing = look_ahead(view), fatal_sets(view), copysets(view), outage(view, ())
    tables: dict[str, pa.Table] = {f"outages_of_{sweep.scope}": sweep_table(view, sweep) for sweep in found.sweeps}
    give_answer(
        options,
        kind="outage",
        summary=summary_of_all(view, found, fatal, copies, nothing),
        tables=tables
        | {
            "fatal_sets": fatal_table(fatal),
            "copysets": copysets_table(copies),
            "states": states_table(view, nothing),
        },
        shown=tuple(look_ahead_shown(view, found, fatal, copies, nothing)),
        views=(view,),
    )
    return list(_failures(view, found, gates))


def _failures(view: ClusterView, found: LookAhead, gates: Sequence[Gate]) -> Iterator[str]:
    """Yield a sentence for each gate that fails, with the worst set and how many there are."""
    now = attrs.asdict(found.now)
    by_scope = {sweep.scope: sweep for sweep in found.sweeps}
    for gate in gates:
        sweep = by_scope.get(_SCOPE_OF_GATE[gate.scope])
        before = now[gate.count_name]
        column = None if sweep is None else sweep.columns[gate.count_name]
        if sweep is None or column is None or before is None:
            yield f"{gate.scope}: the input does not show which partitions would be {gate.state}"
            continue
        worse = column > before
        if worse.any():
            place = int(column.argmax())
            others = f" ({int(worse.sum())} of {sweep.count} make it worse)" if sweep.count > 1 else ""
            yield f"losing {_set_name(view, sweep, place)}: {_of_state(gate, before, int(column[place]))}{others}"


def gates_of(text: str, *, with_lose: bool) -> Iterator[Gate]:
    """Yield the gates in a list with commas; raise UsageError for an unknown one, or one of the other scope."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names or [text]:
        scope, _, state = name.partition(":")
        if scope not in GATE_SCOPES or (state or GATE_STATES[0]) not in GATE_STATES:
            allowed = f"SCOPE[:STATE], SCOPE one of {', '.join(GATE_SCOPES)}, STATE one of {', '.join(GATE_STATES)}"
            raise UsageError(f"--fail-on is {name!r}; allowed is a list with commas of {allowed}")
        if (scope == LOST) != with_lose:
            where = "only with --lose" if scope == LOST else "only without --lose; with it the scope is lost"
            raise UsageError(f"--fail-on {name!r}: the scope {scope} is judged {where}")
        yield Gate(scope, state or GATE_STATES[0])


def lost_brokers(view: ClusterView, texts: Sequence[str]) -> tuple[BrokerId, ...]:
    """Return the brokers that the values of --lose name; raise UsageError for a rack or an id that is unknown."""
    lost: list[BrokerId] = []
    for text in texts:
        if not text.startswith(_RACK):
            lost += parse_broker_list(text)
            continue
        name = text.removeprefix(_RACK)
        of_rack = [broker.id for broker in view.brokers if broker.rack == name]
        if not of_rack:
            known = ", ".join(view.racks) or "none; --racks gives them"
            raise UsageError(f"--lose {text!r}: no broker is in rack {name!r}; the racks of {view.name} are {known}")
        lost += of_rack
    return tuple(lost)


def summary_of_lost(view: ClusterView, found: Outage) -> dict[str, Any]:
    """Return the answer for one set of lost brokers, for programs."""
    back = found.coming_back
    return _heading(view, found.notes) | {
        "lost": list(found.lost),
        "now": attrs.asdict(found.now),
        "then": attrs.asdict(found.counts),
        "states": states_json(view, found),
        "pile_up": attrs.asdict(found.takeover),
        "headroom": [attrs.asdict(each) for each in found.headroom],
        "affected_count": int(found.affected.size),
        "must_return": {
            name: {
                "broker_ids": list(back.must_return(with_elr=with_elr)),
                "order_matters_count": back.order_matters_count(with_elr=with_elr),
            }
            for name, with_elr in (("without_elr", False), ("with_elr", True))
        },
    }


def summary_of_all(
    view: ClusterView, found: LookAhead, fatal: FatalSets, copies: Sequence[Copysets], now: Outage
) -> dict[str, Any]:
    """Return the answer for every set of each scope, for programs: the worst sets, and counts of all."""
    return _heading(view, found.notes) | {
        "now": attrs.asdict(found.now),
        "states": states_json(view, now),
        "headroom": [attrs.asdict(each) for each in now.headroom],
        "set_count": {sweep.scope: sweep.count for sweep in found.sweeps},
        "worst": {sweep.scope: worst_rows(view, sweep) for sweep in found.sweeps},
        "fatal_sets": [attrs.asdict(each) | {"loss_probability": each.loss_probability} for each in fatal.sizes],
        "copysets": [attrs.asdict(each) for each in copies],
    }


def _heading(view: ClusterView, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "cluster": view.name,
        "broker_count": len(view.brokers),
        "rack_count": len(view.racks),
        "partition_count": view.partitions.count,
        "notes": list(notes),
    }


def _is_worse(before: int | None, after: int | None) -> bool:
    return before is None or after is None or after > before


def _of_state(gate: Gate, before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return f"the input does not show which partitions would be {gate.state}"
    return f"{plural(after, 'partition')} {gate.state}, {before} now"


def _names(lost: Sequence[BrokerId]) -> str:
    shown = first_of(lost, 10)
    return f"{'broker' if len(lost) == 1 else 'brokers'} {shown}"


def _set_name(view: ClusterView, sweep: Sweep, place: int) -> str:
    rack = [] if sweep.rack is None else [f"rack {view.racks[int(sweep.rack[place])]}"]
    columns = [column for column in (sweep.broker, sweep.other_broker) if column is not None]
    ids = [f"broker {view.brokers[int(column[place])].id}" for column in columns]
    return " and ".join([*rack, *ids])
