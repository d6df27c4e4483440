"""Show outages as tables for the terminal: the worst first, each count beside what it is now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from rich.console import RenderableType
from rich.text import Text

from broker.cli import printable
from broker.cluster import BoolArray, ClusterView
from broker.units import format_size
from broker.wording import first_of
from placement.outages.copysets import Copysets
from placement.outages.fatal import FatalSets
from placement.outages.look_ahead import LookAhead, Sweep, sweep_table, worst
from placement.outages.lost import STATES, Headroom, Outage
from spark_analysis.cli.cluster_inputs import shown_table
from spark_analysis.report.figures import UNKNOWN, count, decimal, percent, plural, ppm

SHOWN_MAX: Final = 5
TOPICS_MAX: Final = 100
PARTITIONS_MAX: Final = 10
_WORST_MAX: Final = 10
_STATE_TITLES: Final = ("at risk", "without a leader", "under min.insync.replicas")
_COUNTS: Final = (
    ("leaderless", "leaderless_count"),
    ("under\nmin-ISR", "under_min_isr_count"),
    ("at\nmin-ISR", "at_min_isr_count"),
    ("no\nreplica", "no_replica_count"),
    ("at\nrisk", "at_risk_count"),
)
_COLUMNS: Final = ("lost", *(title for title, _ in _COUNTS), "bytes\nat risk", "leaders\nto one", "most led\n(x mean)")
_SETS: Final = {"brokers": "broker", "pairs": "pair", "racks": "rack", "racks_and_brokers": "rack and broker"}


def worst_rows(view: ClusterView, sweep: Sweep, limit: int = _WORST_MAX) -> list[dict[str, Any]]:
    """Return the worst sets of one scope with their columns."""
    rows: list[dict[str, Any]] = sweep_table(view, sweep).take(worst(sweep, limit)).to_pylist()
    return rows


def look_ahead_shown(
    view: ClusterView, found: LookAhead, fatal: FatalSets, copies: Sequence[Copysets], nothing: Outage
) -> Iterator[RenderableType]:
    """Yield what is wrong already, after the outage of nothing, and the tables of a look-ahead."""
    yield from _heading(view, found.notes)
    yield from _states(view, nothing)
    rows = [_row("nothing (now)", attrs.asdict(found.now))]
    for sweep in found.sweeps:
        listed = worst_rows(view, sweep, SHOWN_MAX)
        rows += [_row(_set_name(row), row) for row in listed]
    sizes = ", ".join(f"{plural(each.count, _SETS[each.scope])}" for each in found.sweeps)
    yield shown_table(f"The worst {SHOWN_MAX} of each kind, of {sizes}", _COLUMNS, rows)
    yield Text()
    yield from _concentration(view, found)
    yield _headroom(nothing.headroom)
    yield Text()
    yield shown_table(
        "Fatal sets: losing all of one leaves a partition at risk",
        ("brokers", "sets", "fatal", "minimal", "probability"),
        [
            (str(each.size), count(each.set_count), count(each.fatal_count), count(each.minimal_count), _chance(each))
            for each in fatal.sizes
        ],
    )
    yield Text()
    yield shown_table(
        "Copysets: sets of brokers that hold all replicas of a partition",
        ("factor", "partitions", "copysets", "fewest at this\nscatter width", "fewest\nat all", "scatter width"),
        [
            (
                str(each.replication_factor),
                count(each.partition_count),
                count(each.copyset_count),
                count(each.copyset_count_min),
                count(each.copyset_count_least_scatter),
                f"{count(each.scatter_width_min)} to {count(each.scatter_width_max)}",
            )
            for each in copies
        ],
    )


def lost_shown(view: ClusterView, found: Outage) -> Iterator[RenderableType]:
    """Yield the tables of one outage."""
    yield from _heading(view, found.notes)
    takeover = found.takeover
    lost = first_of(found.lost, SHOWN_MAX)
    rows = [
        _row("nothing (now)", attrs.asdict(found.now)),
        _row(lost, attrs.asdict(found.counts) | attrs.asdict(takeover)),
    ]
    yield shown_table(f"Losing {plural(len(found.lost), 'broker')}", _COLUMNS, rows)
    yield Text()
    if takeover.failover_broker is not None:
        yield Text(
            f"Broker {takeover.failover_broker} takes over {count(takeover.failover_count)} of "
            f"{plural(takeover.lost_leader_count, 'leader')} ({percent(ppm(takeover.failover_share))}); "
            f"broker {takeover.leader_count_max_broker} leads most then: {count(takeover.leader_count_max)}, "
            f"{decimal(takeover.leader_max_over_mean)} times the mean."
        )
    yield _headroom(found.headroom)
    yield Text()
    yield from _states(view, found)
    yield from _coming_back(found)


def states_json(view: ClusterView, found: Outage) -> dict[str, Any]:
    """Return each bad state for programs: partitions in it now and after the outage, its topics, the first partitions.

    There are at most `TOPICS_MAX` topics and `PARTITIONS_MAX` partitions, of those after the outage.
    """
    return {
        name: {
            "now_count": getattr(found.now, f"{name}_count"),
            "count": getattr(found.counts, f"{name}_count"),
            "topics": [
                {"topic": topic, "count": each, "partition_count": whole}
                for topic, each, whole in topic_counts(view, getattr(found.states, name))[:TOPICS_MAX]
            ],
            "partitions": first_partitions(view, getattr(found.states, name)),
        }
        for name in STATES
    }


def topic_counts(view: ClusterView, flags: BoolArray) -> list[tuple[str, int, int]]:
    """Return the topics of the partitions that are flagged, with how many are and how many there are, most first."""
    topic = view.partitions.topic_index
    counts = np.bincount(topic[flags], minlength=len(view.topics))
    wholes = np.bincount(topic, minlength=len(view.topics))
    order = np.lexsort((np.arange(counts.size), -counts))[: np.count_nonzero(counts)]
    return [(view.topics[place].name, int(counts[place]), int(wholes[place])) for place in order.tolist()]


def first_partitions(view: ClusterView, flags: BoolArray) -> list[str]:
    """Return the names of the first `PARTITIONS_MAX` partitions that are flagged."""
    table = view.partitions
    rows = np.flatnonzero(flags)[:PARTITIONS_MAX].tolist()
    return [f"{view.topics[table.topic_index[row]].name}-{table.partition_ids[row]}" for row in rows]


def _states(view: ClusterView, found: Outage) -> Iterator[RenderableType]:
    """Yield the bad states after an outage: how many partitions, how many already now, topics, first partitions.

    States of the same partitions share their lines.
    """
    shown: dict[bytes, list[str]] = {}
    for name, title in zip(STATES, _STATE_TITLES, strict=True):
        shown.setdefault(getattr(found.states, name).tobytes(), []).append(title)
    then = "then" if found.lost else "already, before anything is lost"
    now = found.states_now
    wrong_now = now.at_risk | now.leaderless | now.under_min_isr
    is_wrong = False
    for packed, titles in shown.items():
        flags = np.frombuffer(packed, dtype=np.bool_)
        whole = int(np.count_nonzero(flags))
        if not whole:
            continue
        is_wrong = True
        before = int(np.count_nonzero(flags & wrong_now))
        already = f", of which {count(before)} in trouble already" if found.lost else ""
        title = ", ".join(titles)
        yield Text(f"{title[0].upper()}{title[1:]} {then}: {plural(whole, 'partition')}{already}", style="bold")
        topics = topic_counts(view, flags)
        named = [f"{topic}: {count(each)} of {plural(of, 'partition')}" for topic, each, of in topics[:SHOWN_MAX]]
        more = f"; and {plural(len(topics) - SHOWN_MAX, 'more topic')}" if len(topics) > SHOWN_MAX else ""
        yield Text(printable(f"  {'; '.join(named)}{more}"))
        first = first_partitions(view, flags)
        rest = f"; --out FOLDER writes all {count(whole)}" if whole > len(first) else ""
        yield Text(printable(f"  {', '.join(first)}{rest}"))
    if is_wrong and not found.lost:
        yield Text()


def _coming_back(found: Outage) -> Iterator[RenderableType]:
    back = found.coming_back
    if not back.rows.size:
        return
    yield Text()
    yield Text("Before all partitions at risk are led again without loss", style="bold")
    for title, with_elr in (("Without ELR", False), ("With ELR", True)):
        brokers = back.must_return(with_elr=with_elr)
        listed = first_of(brokers, 10)
        depends = back.order_matters_count(with_elr=with_elr)
        words = f"must return: {listed}" if brokers else "no single broker must return"
        order = f"; for {plural(depends, 'partition')} it depends on the order of fencing" if depends else ""
        yield Text(f"  {title} {words}{order}.")


def _heading(view: ClusterView, notes: Iterable[str]) -> Iterator[RenderableType]:
    racks = f" in {plural(len(view.racks), 'rack')}" if view.racks else ", no racks known"
    brokers, partitions = plural(len(view.brokers), "broker"), plural(view.partitions.count, "partition")
    yield Text(printable(f"{view.name}: {brokers}{racks}, {partitions}"), style="bold")
    for note in notes:
        yield Text(f"  {printable(note)}")
    yield Text()


def _row(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    counts = [count(row[key]) for _, key in _COUNTS]
    risk = row["at_risk_bytes"]
    size = UNKNOWN if risk is None else format_size(risk)
    if "lost_leader_count" not in row:
        return (name, *counts, size, "", "")
    taken = f"{count(row['failover_count'])} of {count(row['lost_leader_count'])}"
    over = row["leader_max_over_mean"]
    most = count(row["leader_count_max"]) + ("" if over is None else f" ({decimal(over)})")
    return (name, *counts, size, taken, most)


def _set_name(row: Mapping[str, Any]) -> str:
    rack = [f"rack {row['rack']}"] if "rack" in row else []
    ids = [str(row[name]) for name in ("broker_id", "other_broker_id") if name in row]
    return " + ".join([*rack, *ids])


def _concentration(view: ClusterView, found: LookAhead) -> Iterator[RenderableType]:
    """Yield the broker whose leaders go to one other in the largest share."""
    rows = sweep_table(view, found.brokers).to_pylist()
    shares = [row for row in rows if row["failover_share"] is not None]
    if shares:
        row = max(shares, key=lambda each: (each["failover_share"], each["failover_count"], -each["broker_id"]))
        yield Text(
            f"Failover concentration: broker {row['failover_broker_id']} takes over {count(row['failover_count'])} of "
            f"{plural(row['lost_leader_count'], 'leader')} of broker {row['broker_id']} "
            f"({percent(ppm(row['failover_share']))}); then one broker leads {count(row['leader_count_max'])}, "
            f"{decimal(row['leader_max_over_mean'])} times the mean."
        )


def _headroom(found: Sequence[Headroom]) -> RenderableType:
    listed = "; ".join(f"{each.headroom}: {plural(each.partition_count, 'partition')}" for each in found)
    return Text(f"In-sync replicas above min.insync.replicas: {listed or 'not known'}")


def _chance(each: Any) -> str:
    chance = each.loss_probability
    return UNKNOWN if chance is None else f"{chance:.2%}" if chance == 0 or chance >= 0.0001 else f"{chance:.1e}"
