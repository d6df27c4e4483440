"""Define `brokerside impact`, which says what a reassignment plan does before it is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import click
import pyarrow as pa

from broker.cli import EXIT_REFUSED, kafka_option, printable, takes
from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.ids import BrokerId, broker_id
from broker.releases import NEWEST, Release
from placement.balance.measures import side_by_side
from placement.formats.documents import JSON_BYTES_MAX
from placement.formats.one_topic import ZOOKEEPER
from placement.formats.plan_files import PLAN
from placement.formats.plans import ParsedPlan, read_plan
from placement.outages.look_ahead import LookAhead, look_ahead
from placement.planning.completion import KRAFT_ASSUMED_SINCE, ZOOKEEPER_UNTIL
from placement.planning.findings import Finding, finding, findings
from placement.planning.impact import Impact, States, impact
from placement.planning.impact_tables import (
    batch_row,
    batches_table,
    brokers_table,
    directories_table,
    moves_table,
)
from placement.planning.throttle import Links
from spark_analysis.cli.cluster_inputs import (
    Cluster,
    ClusterOptions,
    answer_options,
    cluster_options,
    give_answer,
    read_cluster,
    throttle_of,
)
from spark_analysis.cli.commands import PROGRAM
from spark_analysis.cli.impact_text import impact_shown
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.sources.files import read_small_file
from spark_analysis.sources.inputs import STDIN, saved_inputs

LOOKED_AHEAD: Final = ("leaderless_count", "under_min_isr_count", "at_risk_count")


@attrs.frozen(kw_only=True)
class ImpactOptions(ClusterOptions):
    """Hold the options of `brokerside impact`."""

    arguments: tuple[str, ...]
    throttle: str | None
    add: tuple[str, ...]
    release: Release | None
    zookeeper: bool

    @property
    def dump(self) -> str | None:
        """Return the DUMP, None where a live cluster is asked."""
        return self.arguments[0] if self.live is None else None

    @property
    def plans(self) -> tuple[str, ...]:
        """Return the plans, all arguments where a live cluster is asked."""
        return self.arguments[1:] if self.live is None else self.arguments


@attrs.frozen(kw_only=True, eq=False)
class Answer:
    """Hold all that is shown of a plan's impact."""

    cluster: ClusterView
    plans: tuple[ParsedPlan, ...]
    impact: Impact
    findings: tuple[Finding, ...]
    measured: list[dict[str, Any]]
    outages_before: LookAhead
    outages_after: LookAhead


@click.command("impact")
@click.argument("arguments", nargs=-1, required=True, metavar="DUMP PLAN...")
@click.option(
    "--throttle",
    metavar="BYTES",
    help="Rate of kafka-reassign-partitions --throttle in bytes a second, such as 50000000 or 50MiB (default: none).",
)
@click.option(
    "--add",
    multiple=True,
    metavar="ID[:RACK]",
    help="Broker that holds nothing yet, which most dumps leave out. May be repeated.",
)
@kafka_option(default=None)
@click.option(
    "--zookeeper",
    is_flag=True,
    help="The cluster runs with ZooKeeper, whose controller waits for more (default: of releases before "
    f"{KRAFT_ASSUMED_SINCE}).",
)
@cluster_options
@answer_options
@takes(ImpactOptions)
def impact_command(options: ImpactOptions) -> int:
    """Show what a reassignment plan does to a cluster before it is run.

    \b
    A PLAN is the JSON of kafka-reassign-partitions (also what --generate
    prints), the folder of `plan --out`, a map of topicmappr, or Cruise
    Control's answer with proposals.
    Several are batches, run in the order given; - is standard input, for one
    PLAN or for DUMP. Exit status 1 is a finding that should stop the plan:
    something is refused by Kafka, never completes, runs a disk over, loses
    racks, or goes under min-ISR.
    brokerside impact prod.txt plan.json --throttle 50MiB
    brokerside impact prod.txt batch-*.json --sizes log-dirs.txt --out impact
    """
    if not options.plans:
        raise click.UsageError("Missing argument 'PLAN...'.", click.get_current_context(silent=True))
    if [options.dump, *options.plans].count(STDIN) > 1:
        raise UsageError("standard input (-) can be the DUMP or one PLAN, not both")
    with read_cluster(options.dump, options) as cluster:
        view = with_added(cluster.view, options.add)
        plans = tuple(_read(path, view) for path in options.plans)
        answer = _answer(attrs.evolve(cluster, view=view), plans, options)
    give_answer(
        options,
        kind="impact",
        summary=summary(answer),
        tables={
            "batches": batches_table(answer.impact),
            "brokers": brokers_table(answer.impact),
            "partitions": moves_table(answer.impact),
            "directories": directories_table(answer.impact),
            "measures": pa.Table.from_pylist(answer.measured),
        },
        shown=tuple(impact_shown(answer.impact, answer.findings, worst_rows(answer), answer.measured)),
        views=(view,),
    )
    bad = [one for one in answer.findings if one.is_bad]
    for one in bad if options.as_json else ():
        click.echo(f"{PROGRAM}: a finding that should stop the plan: {printable(one.sentence)}", err=True)
    return EXIT_REFUSED if bad else 0


def with_added(view: ClusterView, added: Sequence[str]) -> ClusterView:
    """Return the view with the brokers of `--add ID[:RACK]`; raise UsageError for one that is there, or no id."""
    racks: dict[BrokerId, str | None] = {}
    known = {broker.id for broker in view.brokers}
    for text in added:
        number, colon, rack = text.partition(":")
        if not (number.isascii() and number.isdecimal() and len(number) <= 10) or (colon and not rack):
            raise UsageError(f"--add is {text!r}; the form is ID or ID:RACK, such as 7:rack-a")
        broker = broker_id(int(number), where="--add")
        if broker in known or broker in racks:
            raise UsageError(f"--add {text!r}: broker {broker} is in cluster {view.name} already")
        racks[broker] = rack or None
    return view.with_empty(racks) if racks else view


def _read(path: str, view: ClusterView) -> ParsedPlan:
    if path == STDIN:
        with saved_inputs((DumpInput(STDIN, STDIN),)) as (saved,):
            data = read_small_file(saved.path, size_bytes_max=JSON_BYTES_MAX)
    else:
        path = str(Path(path) / PLAN) if Path(path).is_dir() else path
        data = read_small_file(path, size_bytes_max=JSON_BYTES_MAX)
    plan = read_plan([data], source=path, view=view)
    if plan.rows_rejected:
        text = (
            f"{PROGRAM}: warning: {path}: {plan.rows_rejected:,} of {plan.rows_in:,} entries were put aside; the "
            f"first: {plan.rejects[0].reason}"
        )
        click.echo(printable(text), err=True)
    for note in plan.notes:
        click.echo(printable(f"{PROGRAM}: note: {path}: {note}"), err=True)
    return plan


def _answer(cluster: Cluster, plans: tuple[ParsedPlan, ...], options: ImpactOptions) -> Answer:
    view, capacities = cluster.view, cluster.capacities
    links = Links(
        throttle=throttle_of(options.throttle),
        network_in=capacities.column(view, "network_in_bytes_per_second"),
        network_out=capacities.column(view, "network_out_bytes_per_second"),
        ingress=capacities.column(view, "ingress_bytes_per_second"),
    )
    zookeeper = options.zookeeper or view.format == ZOOKEEPER
    found = impact(
        [plan.reassignment for plan in plans],
        links=links,
        release=options.release or (ZOOKEEPER_UNTIL if zookeeper else NEWEST),
        zookeeper=zookeeper,
    )
    said = findings(found, disk_bytes=capacities.column(view, "disk_bytes"))
    return Answer(
        cluster=view,
        plans=plans,
        impact=found,
        findings=(*_of_plans(plans), *said),
        measured=side_by_side(found.before, found.after),
        outages_before=look_ahead(view),
        outages_after=look_ahead(found.after),
    )


def _of_plans(plans: Sequence[ParsedPlan]) -> tuple[Finding, ...]:
    """Return the findings about the files themselves."""
    stale = [plan for plan in plans if plan.stale_count]
    return (
        *(finding("rollback", one.rows_analysed, source=one.source) for one in plans if one.is_rollback),
        *(finding("refused", one.rows_rejected, refusal=one.refusal) for one in plans if one.refusal is not None),
        *(finding("stale", each.stale_count, source=each.source, rows=each.rows_analysed) for each in stale),
    )


def worst_rows(answer: Answer) -> list[dict[str, Any]]:
    """Return the worst loss of one broker, of two, and of a rack, before and after the plan, state by state."""
    rows = []
    before = {sweep.scope: sweep for sweep in answer.outages_before.sweeps}
    for sweep in answer.outages_after.sweeps:
        for name in LOOKED_AHEAD:
            first, last = before[sweep.scope].columns[name], sweep.columns[name]
            if first is not None and last is not None and last.size:
                rows.append({"scope": sweep.scope, "state": name, "before": int(first.max()), "after": int(last.max())})
    return rows


def summary(answer: Answer) -> dict[str, Any]:
    """Return the answer as JSON's values."""
    found = answer.impact
    return {
        "cluster": answer.cluster.name,
        "release": str(found.release),
        "controller": "zookeeper" if found.zookeeper else "kraft",
        "plans": [
            {
                "source": plan.source,
                "format": plan.format,
                "rows_in": plan.rows_in,
                "rows_analysed": plan.rows_analysed,
                "rows_rejected": plan.rows_rejected,
                "lines_passed_over": plan.lines_passed_over,
                "unchanged_count": plan.unchanged_count,
                "stale_count": plan.stale_count,
                "rejects": [reject.reason for reject in plan.rejects[:100]],
            }
            for plan in answer.plans
        ],
        "moved_replica_count": found.moved_replicas,
        "moved_bytes": found.moved_bytes,
        "moved_bytes_known": found.known_bytes[0],
        "moved_replica_count_of_unknown_size": found.known_bytes[1],
        "leader_changes": found.leader_changes,
        "seconds": None if found.seconds is None or found.seconds == float("inf") else found.seconds,
        "never_ends": None if found.seconds is None else found.seconds == float("inf"),
        "batches": [batch_row(number, batch) for number, batch in enumerate(found.batches, start=1)],
        "brokers": brokers_table(found).to_pylist(),
        "copied_inside_replica_count": len(found.directories.copies),
        "copied_inside_bytes": found.directories.size_bytes,
        "directories": directories_table(found).to_pylist(),
        "under_min_isr_count": _states(found.under_min_isr),
        "fewer_racks_count": _states(found.fewer_racks),
        "measures": answer.measured,
        "worst_outages": worst_rows(answer),
        "findings": [attrs.asdict(one) for one in answer.findings],
    }


def _states(states: States) -> dict[str, int | None]:
    return {"before": states.before, "during": states.during, "after": states.after}
