"""Define `brokerside compare`, which shows what changed between two dumps of one cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import click
import pyarrow as pa
from rich.console import RenderableType
from rich.text import Text

from broker.cli import printable, takes
from broker.errors import UsageError
from placement.balance.comparison import Change, Comparison, compare
from placement.balance.measures import side_by_side
from spark_analysis.cli.cluster_inputs import (
    ClusterOptions,
    answer_options,
    cluster_options,
    give_answer,
    read_cluster,
    shown_table,
)
from spark_analysis.cli.live_options import dump_or_live
from spark_analysis.report.figures import UNKNOWN, count, decimal, plural, quantity
from spark_analysis.sources.inputs import STDIN

SHOWN_MAX: Final = 30
_MEASURES_SHOWN: Final = ("max", "max_over_mean", "cv", "moves")
_TURNOVER: Final = (
    ("leader_gained_count", "leaders_gained", "leaders\n+"),
    ("leader_lost_count", "leaders_lost", "leaders\n-"),
    ("isr_joined_count", "isr_joined", "ISR\njoined"),
    ("isr_left_count", "isr_left", "ISR\nleft"),
    ("replica_gained_count", "replicas_gained", "replicas\n+"),
    ("replica_lost_count", "replicas_lost", "replicas\n-"),
)


@attrs.frozen(kw_only=True)
class CompareOptions(ClusterOptions):
    """Hold the options of `brokerside compare`."""

    before: str
    after: str | None
    sizes_after: str | None


@click.command("compare")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="[AFTER]", required=False)
@click.option("--sizes-after", metavar="FILE", help="Sizes of the replicas at the time of AFTER; --sizes are BEFORE's.")
@cluster_options
@answer_options
@takes(CompareOptions)
def compare_command(options: CompareOptions) -> int:
    """Show what changed between two dumps of one cluster, and which broker each change is about.

    \b
    BEFORE and AFTER are dumps or metadata logs of one cluster at two moments;
    with --bootstrap-server, AFTER is the live cluster.
    brokerside compare monday.txt friday.txt
    brokerside compare monday.txt friday.txt --racks racks.csv --out week
    """
    dump_or_live(options.after, options, name="AFTER")
    if options.before == options.after == STDIN:
        raise UsageError("standard input (-) can be BEFORE or AFTER, not both")
    earlier = attrs.evolve(options, bootstrap_server=None)
    later = attrs.evolve(options, sizes=options.sizes_after)
    with read_cluster(options.before, earlier) as first, read_cluster(options.after, later) as last:
        found = compare(first.view, last.view)
    measured = sorted(side_by_side(found.before, found.after), key=lambda row: (row["scope"], row["quantity"]))
    give_answer(
        options,
        kind="compare",
        summary=summary(found, measured),
        tables={
            "topics": _table([attrs.asdict(each) for each in found.topics], ("subject", "change", "detail")),
            "brokers": _table([attrs.asdict(each) for each in found.brokers], ("subject", "change", "detail")),
            "partitions": _table(
                [attrs.asdict(each) for each in found.partitions], ("topic", "partition", "change", "detail")
            ),
            "turnover": pa.Table.from_pylist(turnover_rows(found)),
            "sizes": pa.Table.from_pylist([attrs.asdict(each) for each in found.sizes]),
            "measures": pa.Table.from_pylist(measured),
        },
        shown=tuple(_shown(found, measured)),
        views=(first.view, last.view),
    )
    return 0


def turnover_rows(found: Comparison) -> list[dict[str, Any]]:
    """Return one row for each broker of either dump: the partitions in which it gained or lost a role."""
    turnover = found.turnover
    return [
        {"broker_id": number}
        | {
            name: None if getattr(turnover, field) is None else int(getattr(turnover, field)[row])
            for name, field, _ in _TURNOVER
        }
        for row, number in enumerate(turnover.broker_ids.tolist())
    ]


def summary(found: Comparison, measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the answer as JSON's values."""
    return {
        "before": found.before.name,
        "after": found.after.name,
        "common_partition_count": found.common_partition_count,
        "change_counts": _counts(found),
        "topics": [attrs.asdict(each) for each in found.topics],
        "brokers": [attrs.asdict(each) for each in found.brokers],
        "partitions": [attrs.asdict(each) for each in found.partitions],
        "turnover": turnover_rows(found),
        "sizes": [attrs.asdict(each) for each in found.sizes],
        "measures": list(measured),
    }


def _counts(found: Comparison) -> dict[str, int]:
    every = [each.change for each in (*found.brokers, *found.topics)] + [each.change for each in found.partitions]
    return dict(sorted(Counter(every).items()))


def _table(rows: list[dict[str, Any]], columns: Sequence[str]) -> pa.Table:
    kinds = [(name, pa.int64() if name == "partition" else pa.string()) for name in columns]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def _shown(found: Comparison, measured: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    before, after = found.before, found.after
    yield Text(
        printable(
            f"{before.name} ({plural(before.partitions.count, 'partition')}) and {after.name} "
            f"({plural(after.partitions.count, 'partition')}), {count(found.common_partition_count)} in both"
        )
    )
    counts = _counts(found)
    yield Text(
        "Nothing changed." if not counts else ", ".join(f"{name}: {count(many)}" for name, many in counts.items())
    )
    yield Text()
    if found.brokers:
        yield from _changes("Brokers", found.brokers)
    if found.topics:
        yield from _changes("Topics", found.topics)
    rows = [row for row in turnover_rows(found) if any(row[name] for name, _, _ in _TURNOVER)]
    if rows:
        rows.sort(key=lambda row: (-sum(row[name] or 0 for name, _, _ in _TURNOVER), row["broker_id"]))
        yield shown_table(
            "By broker: partitions in which it gained or lost a role",
            ("broker", *(title for _, _, title in _TURNOVER)),
            [
                (
                    str(row["broker_id"]),
                    *(UNKNOWN if row[name] is None else count(row[name]) for name, _, _ in _TURNOVER),
                )
                for row in rows[:SHOWN_MAX]
            ],
        )
        yield from _more(len(rows), "broker")
        yield Text()
    if found.partitions:
        yield Text("Partitions", style="bold")
        for each in found.partitions[:SHOWN_MAX]:
            yield _line(f"{each.topic}-{each.partition}", each.change, each.detail)
        yield from _more(len(found.partitions), "change")
        yield Text()
    yield _measures(measured)


def _changes(title: str, changes: Sequence[Change]) -> Iterator[RenderableType]:
    yield Text(title, style="bold")
    for each in changes[:SHOWN_MAX]:
        yield _line(each.subject, each.change, each.detail)
    yield from _more(len(changes), "change")
    yield Text()


def _line(subject: str, change: str, detail: str) -> RenderableType:
    return Text(printable(f"{subject}  {change}{': ' if detail else ''}{detail}"))


def _more(total: int, noun: str) -> Iterator[RenderableType]:
    if total > SHOWN_MAX:
        yield Text(f"and {plural(total - SHOWN_MAX, f'more {noun}')}; --json and --out give all")


def _measures(measured: Sequence[dict[str, Any]]) -> RenderableType:
    rows = []
    for each in measured:
        if each["measure"] in _MEASURES_SHOWN and each["scope"] != "topic":
            unit = each["quantity"] if each["measure"] in ("max", "moves") else ""
            shown = [
                UNKNOWN if value is None else quantity(value, unit) if unit else decimal(value)
                for value in (each["before"], each["after"])
            ]
            rows.append((f"{each['quantity']} by {each['scope']}: {each['measure'].replace('_', ' ')}", *shown))
    return shown_table("Measures", ("", "before", "after"), rows)
