"""Define `brokerside plan`, which plans reassignments that move the least, and checks such plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from broker.cli import EXIT_REFUSED, FiniteRange, printable, takes
from broker.cli_options import COUNT
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.known import known_of
from placement.cli import parse_broker_list
from placement.planning.goal import KINDS, MEASURES, Goal, as_targeted
from placement.planning.moves import Rates
from placement.planning.notes import least_of, notes_of
from placement.planning.plan import Plan, make_plan
from placement.planning.plan_tables import brokers_table
from placement.planning.schedule import BATCH_COUNT_MAX, Limits, Schedule, pacing_notes, schedule
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
from spark_analysis.cli.plan_check import CHECKED, check_folder
from spark_analysis.cli.plan_folder import PLANNED, SUMMARY, Planned
from spark_analysis.cli.plan_text import plan_shown


@attrs.frozen(kw_only=True)
class PlanOptions(ClusterOptions):
    """Hold the options of `brokerside plan`."""

    dump: str | None
    goal: str
    remove: str | None
    add: tuple[str, ...]
    factor: int | None
    exclude_topics: tuple[str, ...]
    by: str
    tolerance: float | None
    only_leaders: bool
    per_topic: bool
    new_only_receives: bool
    strict_racks: bool
    from_target: bool
    concurrency: int | None
    batches: int
    throttle: str | None
    check: Path | None


@click.command("plan")
@click.argument("dump", metavar="DUMP", required=False)
@click.option(
    "--goal",
    type=click.Choice(KINDS),
    default="balance",
    show_default=True,
    help="balance and add make loads as even as racks allow, with --remove or a greater --factor too; drain and factor "
    "change only the partitions that they must; racks, with --remove too, moves only what restores racks.",
)
@click.option("--remove", metavar="IDS", help="Brokers that shall hold nothing: ids and ranges such as 5,6 or 0-2.")
@click.option(
    "--add", multiple=True, metavar="IDS[:RACK]", help="Brokers that join, such as 7:rack-a or 8,9. May be repeated."
)
@click.option("--factor", type=COUNT, metavar="N", help="Replication factor of every topic not excluded.")
@click.option(
    "--exclude-topic",
    "exclude_topics",
    multiple=True,
    metavar="TOPIC",
    help="Topic that stays as it is. May be repeated.",
)
@click.option(
    "--by",
    type=click.Choice(MEASURES),
    default="replicas",
    show_default=True,
    help="Make counts even and move the least replicas, or make bytes even within --tolerance and copy few of them, as "
    "--sizes gives them.",
)
@click.option(
    "--tolerance",
    type=FiniteRange(0, 100, max_open=True),
    metavar="PERCENT",
    help="With --by bytes, which needs it: each broker ends within PERCENT of the mean that can be "
    "reached, with --capacity in proportion to its disk.",
)
@click.option("--only-leaders", is_flag=True, help="Reorder replicas only: leaders move, no byte does.")
@click.option(
    "--per-topic",
    is_flag=True,
    help="Spread the replicas of each topic evenly as well.",
)
@click.option("--new-only-receives", is_flag=True, help="Let only the brokers of --add receive replicas.")
@click.option("--strict-racks", is_flag=True, help="Refuse partitions with more replicas than racks.")
@click.option("--from-target", is_flag=True, help="Plan from where reassignments in progress will end.")
@click.option("--concurrency", type=COUNT, metavar="N", help="Partitions that a broker receives or sends at a time.")
@click.option(
    "--batches",
    type=click.IntRange(1, BATCH_COUNT_MAX),
    default=1,
    show_default=True,
    help="Batches to cut the plan into, at least.",
)
@click.option(
    "--throttle",
    metavar="BYTES",
    help="Rate of the commands' --throttle in bytes a second, such as 50000000 or 50MiB (default: none).",
)
@click.option(
    "--check",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Check the plan in DIR instead of making one: rules, loads and bound, from the input alone. With DUMP, also "
    "that the plan was made for it.",
)
@cluster_options
@answer_options
@takes(PlanOptions)
def plan_command(options: PlanOptions) -> int:
    """Make the plan that moves the least replicas to reach a goal, or few bytes, with its proof; or check one.

    \b
    brokerside plan prod.txt --racks racks.csv --out today
    brokerside plan prod.txt --goal drain --remove 5,6 --out drain
    brokerside plan prod.txt --goal add --add 7:rack-a --out grow
    brokerside plan prod.txt --sizes dirs.json --by bytes --tolerance 5 --out even
    brokerside plan prod.txt --only-leaders --out leaders
    brokerside plan --check today

    --out has plan.json, batch-NN.json and rollback.json for kafka-reassign-partitions,
    preferred-election-*.json for kafka-leader-election, commands.txt to run in order,
    certificate.json with the proof, tables, and plan.html to look at.
    """
    if options.check is not None:
        return _check(options.check, options)
    if options.dump is None and options.bootstrap_server is None:
        raise UsageError("a DUMP is needed to plan, or --check DIR to check a plan")
    goal, throttle = goal_of(options), throttle_of(options.throttle)
    with read_cluster(options.dump, options) as cluster:
        view = as_targeted(cluster.view) if options.from_target else cluster.view
        plan = make_plan(view, _with_capacity(goal, cluster, options))
        limits = _limits(plan, cluster, options, throttle)
        _give(plan, schedule(plan.reassignment, limits), limits, options, throttle)
    return 0


def goal_of(options: PlanOptions) -> Goal:
    """Return the goal that the options describe; raise UsageError for one that contradicts itself."""
    return Goal(
        kind=options.goal,
        remove=() if options.remove is None else parse_broker_list(options.remove),
        add=tuple(each for text in options.add for each in _added(text)),
        factor=options.factor,
        exclude_topics=options.exclude_topics,
        by=options.by,
        tolerance=None if options.tolerance is None else options.tolerance / 100,
        only_leaders=options.only_leaders,
        per_topic=options.per_topic,
        new_only_receives=options.new_only_receives,
        strict_racks=options.strict_racks,
    )


def _with_capacity(goal: Goal, cluster: Cluster, options: PlanOptions) -> Goal:
    """Return the goal with the disk bytes of --capacity, in proportion to which bytes become even."""
    if not goal.by_bytes or options.capacity is None:
        return goal
    ids = sorted({one.id for one in cluster.view.brokers} | {number for number, _ in goal.add})
    sizes = ((number, cluster.capacities.of(number).disk_bytes) for number in ids)
    known = tuple((number, size) for number, size in sizes if size is not None)
    if not known:
        raise UsageError(f"{options.capacity} states no disk bytes of the brokers, in proportion to which bytes spread")
    return attrs.evolve(goal, capacity=known)


def _added(text: str) -> Sequence[tuple[BrokerId, str | None]]:
    ids, has_rack, rack = text.partition(":")
    if has_rack and not rack:
        raise UsageError(f"--add {text!r} names no rack after the colon; allowed are 7 and 7:rack-a")
    return [(number, rack or None) for number in parse_broker_list(ids)]


def _limits(plan: Plan, cluster: Cluster, options: PlanOptions, throttle: int | None) -> Limits:
    free = cluster.capacities.free_disk_bytes(plan.view)
    return Limits(
        concurrency=options.concurrency,
        rates=None if throttle is None else Rates.equal(len(plan.view.brokers), throttle),
        free_bytes=free if bool((free >= 0).any()) else None,
        batch_count=options.batches,
    )


def _give(plan: Plan, batches: Schedule, limits: Limits, options: PlanOptions, throttle: int | None) -> None:
    planned = Planned(
        moved=plan.reassignment,
        goal=plan.goal,
        certificate=plan.certificate,
        tally=plan.tally,
        batches=batches.batches,
        throttle=throttle,
    )
    summary = summary_of(plan, planned, batches, limits)
    give_answer(
        options,
        kind=PLANNED,
        summary=summary,
        tables={} if options.out is None else planned.tables(),
        shown=plan_shown(plan, summary, brokers_table(plan.reassignment, plan.goal, plan.certificate, batches.batches)),
        texts={} if options.out is None else planned.texts(summary),
        views=(plan.view,),
        summary_name=SUMMARY,
    )


def summary_of(plan: Plan, planned: Planned, batches: Schedule, limits: Limits) -> dict[str, Any]:
    """Return the numbers of a plan, for programs."""
    is_timed = batches.has_rates and batches.sizes_known
    return {
        "cluster": plan.view.name,
        **planned.figures(),
        "least_of": least_of(plan.goal),
        "seconds_at_throttle": batches.seconds if is_timed else None,
        "seconds_bound": batches.bound.seconds if is_timed else None,
        "seconds_bound_in_batches": batches.batched_bound_seconds if is_timed else None,
        "notes": [*notes_of(plan), *batches.notes, *pacing_notes(batches, limits)],
        "known": [known_of(plan.view).as_json()],
    }


def _check(folder: Path, options: PlanOptions) -> int:
    if options.dump is None and options.bootstrap_server is None:
        found = check_folder(folder, None)
    else:
        with read_cluster(options.dump, options) as cluster:
            view = as_targeted(cluster.view) if options.from_target else cluster.view
            found = check_folder(folder, view)
    give_answer(options, kind=CHECKED, summary=found.summary(), tables={}, shown=found.shown(), views=())
    for fault in found.faults:
        click.echo(f"{PROGRAM}: failed: {printable(fault)}", err=True)
    return EXIT_REFUSED if found.faults else 0
