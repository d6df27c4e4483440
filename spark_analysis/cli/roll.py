"""Define `brokerside roll`, which schedules restarts in the fewest batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import attrs
import click
import numpy as np
import pyarrow as pa
from rich.console import RenderableType
from rich.text import Text

from broker.cli import EXIT_REFUSED, printable, takes
from broker.cli_options import COUNT
from broker.cluster import BoolArray, ClusterView, Int64Array
from broker.errors import RefusedError
from broker.liveness import Liveness
from broker.wording import brokers_listed, counted, first_of
from placement.cli import parse_broker_list
from placement.outages.arrow import partition_columns, table_of
from placement.outages.restart_budget import EMPTY, MARGIN_MAX
from placement.outages.restart_savings import Saving, savings
from placement.outages.restarts import RestartSchedule, restart_schedule, schedule_table
from placement.planning.findings import drained_if_gone
from spark_analysis.cli.cluster_inputs import (
    ClusterOptions,
    answer_options,
    cluster_options,
    give_answer,
    read_cluster,
    shown_table,
)
from spark_analysis.cli.commands import PROGRAM

_DESPITE: Final = (
    ", or give --despite-out-of-sync, which restarts the brokers of each of these partitions one at a time"
)
_NAMED_MAX: Final = 5
_STUCK_SHOWN_MAX: Final = 8
_BROKERS_SHOWN_MAX: Final = 20


@attrs.frozen(kw_only=True)
class RollOptions(ClusterOptions):
    """Hold the options of `brokerside roll`."""

    dump: str | None
    margin: int
    max_batch: int | None
    controllers: str | None
    despite_out_of_sync: bool
    fail_on_stuck: bool


@click.command("roll")
@click.argument("dump", metavar="[DUMP]", required=False)
@click.option(
    "--margin",
    type=click.IntRange(0, MARGIN_MAX),
    default=0,
    show_default=True,
    help="In-sync replicas that every partition keeps above min.insync.replicas during a batch.",
)
@click.option("--max-batch", type=COUNT, help="Most brokers that restart at once (default: no limit).")
@click.option(
    "--controllers",
    metavar="IDS",
    help="Brokers that are KRaft controllers too, such as 1,2,3; a batch leaves a majority of them.",
)
@click.option(
    "--despite-out-of-sync",
    is_flag=True,
    help="Schedule although replicas out of sync leave partitions at or under min.insync.replicas; the brokers of each "
    "of them then restart one at a time. Without this flag such a cluster is refused with status 1.",
)
@click.option(
    "--fail-on-stuck",
    is_flag=True,
    help="Exit with status 1 when a partition cannot keep min.insync.replicas and the margin, whatever the order.",
)
@cluster_options
@answer_options
@takes(RollOptions)
def roll(options: RollOptions) -> int:
    """Schedule restarts in the fewest batches in which no partition falls under min.insync.replicas.

    \b
    A batch begins when every broker of the one before is back in sync. Brokers
    that are not alive, or hold nothing, do not restart.
    Replicas out of sync that leave a partition nothing to lose: status 1.
    brokerside roll prod.txt --racks racks.csv
    brokerside roll prod.txt --margin 1 --max-batch 5 --out roll
    """
    controllers = () if options.controllers is None else parse_broker_list(options.controllers)
    with read_cluster(options.dump, options) as cluster:
        view = cluster.view
        try:
            found = restart_schedule(
                view,
                margin=options.margin,
                batch_max=options.max_batch,
                controllers=controllers,
                despite_out_of_sync=options.despite_out_of_sync,
            )
        except RefusedError as refused:
            raise RefusedError(f"{refused}{_DESPITE}{drained_if_gone(view, _dead(view), lead='; ')}") from None
        fewer = savings(view, found)
        give_answer(
            options,
            kind="roll",
            summary=summary_of(view, found, fewer, options),
            tables={
                "batches": schedule_table(found),
                "stuck_partitions": stuck_table(view, found),
                "costly_partitions": costly_table(view, fewer),
            },
            shown=tuple(_shown(view, found, fewer, options)),
            views=(view,),
        )
    stuck = int(found.limits.stuck.rows.size)
    if not options.fail_on_stuck or not stuck:
        return 0
    click.echo(f"{PROGRAM}: failed: {counted(stuck, 'partition')} cannot keep min.insync.replicas", err=True)
    return EXIT_REFUSED


def summary_of(
    view: ClusterView, found: RestartSchedule, fewer: tuple[Saving, ...], options: RollOptions
) -> dict[str, Any]:
    """Return the answer for programs, with its certificate."""
    ids = [view.brokers[row].id for row in found.limits.limits.brokers.tolist()]
    return {
        "cluster": view.name,
        "broker_count": len(view.brokers),
        "partition_count": view.partitions.count,
        "margin": options.margin,
        "max_batch": options.max_batch,
        "batch_count": len(found.batches),
        "batch_count_min": found.bound,
        "is_optimal": found.is_optimal,
        "proof": {
            "by": found.checked.by,
            "weights": {str(each): int(weight) for each, weight in zip(ids, found.weights.tolist(), strict=True)},
            "cases": [],
        },
        "batches": [list(batch) for batch in found.batches],
        "batch_broker_count_max": _most_at_once(found),
        "fenced_broker_ids": [broker for broker, why in found.limits.left_out if why != EMPTY],
        "left_out": [{"broker_id": broker, "why": why} for broker, why in found.limits.left_out],
        "stuck_partition_count": int(found.limits.stuck.rows.size),
        "out_of_sync_partition_count": int(found.limits.stuck.forbidding.size),
        "savings": [
            {
                "batch_count": each.batch_count,
                "partition_count": int(each.rows.size),
                "partitions": _names(view, each.rows[:_STUCK_SHOWN_MAX]),
            }
            for each in fewer
        ],
        "if_gone_for_good": drained_if_gone(view, _dead(view)) or None,
        "notes": list(found.limits.notes),
    }


def stuck_table(view: ClusterView, found: RestartSchedule) -> pa.Table:
    """Return one row for each partition that no schedule keeps at min.insync.replicas, and what it lacks."""
    stuck = found.limits.stuck
    return table_of(
        partition_columns(view, stuck.rows)
        | {"missing_count": stuck.missing_count, "out_of_sync_count": stuck.out_of_sync_count}
    )


def costly_table(view: ClusterView, fewer: tuple[Saving, ...]) -> pa.Table:
    """Return one row for each number of batches and each partition that stands in its way."""
    rows = np.concatenate([each.rows for each in fewer] or [np.zeros(0, dtype=np.int64)])
    counts = [np.full(each.rows.size, each.batch_count, dtype=np.int32) for each in fewer]
    return table_of(
        {"batch_count": np.concatenate(counts or [np.zeros(0, dtype=np.int32)])} | partition_columns(view, rows)
    )


def _shown(
    view: ClusterView, found: RestartSchedule, fewer: tuple[Saving, ...], options: RollOptions
) -> Iterator[RenderableType]:
    brokers, partitions = counted(len(view.brokers), "broker"), counted(view.partitions.count, "partition")
    most = _most_at_once(found)
    at_once = f"restart at most {most} at once" if most else "no broker restarts"
    yield Text(printable(f"{view.name}: {at_once}; {brokers}, {partitions}"), style="bold")
    for note in found.limits.notes:
        yield Text(f"  {printable(note)}")
    if found.limits.stuck.forbidding.size:
        yield Text(printable(f"  WARNING: {_warning(found)}"), style="bold red")
    for reason, listed in groupby(sorted(found.limits.left_out, key=itemgetter(1)), key=itemgetter(1)):
        ids = [broker for broker, _ in listed]
        yield Text(f"  left out ({reason}): {brokers_listed(ids, _BROKERS_SHOWN_MAX)}")
    if dead := _dead(view):
        yield Text(printable(f"  {drained_if_gone(view, dead)}"))
    if not found.batches:
        return
    yield Text()
    restarting = frozenset(broker for batch in found.batches for broker in batch)
    rows = [
        (str(number), str(len(batch)), _listed(batch, restarting, view))
        for number, batch in enumerate(found.batches, start=1)
    ]
    yield shown_table(_heading(found), ("batch", "size", "brokers"), rows, left_count=3)
    if found.limits.stuck.rows.size:
        yield Text()
        yield from _stuck(view, found, options)
    if fewer:
        yield Text()
        yield Text("Partitions that cost batches", style="bold")
        for each in fewer:
            names = first_of(_names(view, each.rows), _NAMED_MAX)
            verb = f"Move or grow {'this' if each.rows.size == 1 else f'these {each.rows.size}'}"
            takes_ = f"it takes {counted(each.batch_count, 'batch', 'batches')} instead of {len(found.batches)}"
            yield Text(printable(f"  {verb} and {takes_}: {names}"))


def _dead(view: ClusterView) -> list[int]:
    """Return the brokers that are down and are not stopping: they may be gone for good."""
    return [int(broker) for broker, how in view.down.items() if how is not Liveness.STOPPING]


def _most_at_once(found: RestartSchedule) -> int:
    return max(map(len, found.batches), default=0)


def _warning(found: RestartSchedule) -> str:
    """Return what a schedule despite replicas out of sync risks."""
    stuck, first = found.limits.stuck, found.batches[0] if found.batches else ()
    batch = ", ".join(map(str, first[:_BROKERS_SHOWN_MAX]))
    behind = brokers_listed((broker for broker, _ in stuck.replica_count_by_broker), _NAMED_MAX)
    have = f"{counted(stuck.forbidding.size, 'partition')} {'has' if stuck.forbidding.size == 1 else 'have'}"
    return (
        f"{have} replicas out of sync on {behind} and nothing to lose; the "
        f"first batch ({batch}) takes the fewest of their in-sync replicas. Do not start the second before "
        "every replica is in sync"
    )


def _heading(found: RestartSchedule) -> str:
    count = counted(len(found.batches), "batch", "batches")
    if found.is_optimal:
        return f"{count}; proven by weights of the brokers: no schedule has fewer"
    return f"{count}; every schedule has {found.bound} or more, so at most {len(found.batches) - found.bound} too many"


def _stuck(view: ClusterView, found: RestartSchedule, options: RollOptions) -> Iterator[RenderableType]:
    """Yield what no schedule can keep, by topic, and what would do."""
    stuck = found.limits.stuck
    below = "min.insync.replicas" + (f" and a margin of {options.margin}" if options.margin else "")
    yield Text(f"Partitions that cannot keep {below}, whatever the order: {stuck.rows.size}", style="bold")
    yield Text(
        "  WARNING: while one of their brokers restarts, producers with acks=all get NOT_ENOUGH_REPLICAS, or no leader "
        "answers. Their brokers restart one at a time, so that they keep a leader where two replicas are in "
        "sync by then.",
        style="bold red",
    )
    topics = view.partitions.topic_index[stuck.rows]
    values, counts = np.unique(topics, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_STUCK_SHOWN_MAX]
    for place in order.tolist():
        of_topic = topics == values[place]
        yield Text(printable(f"  {view.topics[int(values[place])].name}: {_remedy(found, of_topic)}"))
    if values.size > _STUCK_SHOWN_MAX:
        yield Text(f"  and {counted(values.size - _STUCK_SHOWN_MAX, 'more topic')}")


def _remedy(found: RestartSchedule, of_topic: BoolArray) -> str:
    """Return how many partitions of a topic are stuck, and what would do."""
    stuck = found.limits.stuck
    missing = int(stuck.missing_count[of_topic].max())
    waiting = int(np.count_nonzero(stuck.out_of_sync_count[of_topic] >= stuck.missing_count[of_topic]))
    lower = f", or min.insync.replicas lower by {missing}" if missing < int(stuck.min_isr[of_topic].min()) else ""
    wait = f" ({counted(waiting, 'partition')} only until all replicas are in sync)" if waiting else ""
    count = counted(int(np.count_nonzero(of_topic)), "partition")
    return f"{count}; {counted(missing, 'more in-sync replica')} would do{lower}{wait}"


def _names(view: ClusterView, rows: Int64Array) -> list[str]:
    table = view.partitions
    return [f"{view.topics[table.topic_index[row]].name}-{table.partition_ids[row]}" for row in rows.tolist()]


def _listed(batch: tuple[int, ...], restarting: frozenset[int], view: ClusterView) -> str:
    """Return the brokers of a batch, and its racks if it is made of whole racks."""
    shown = first_of(batch, _BROKERS_SHOWN_MAX)
    inside = {broker.rack for broker in view.brokers if broker.id in batch}
    whole = all(broker.id in batch for broker in view.brokers if broker.rack in inside and broker.id in restarting)
    racks = [each for each in inside if each is not None]
    return f"{shown} (all of {', '.join(sorted(racks))})" if whole and racks and len(racks) == len(inside) else shown
