"""Write a plan as an HTML page: what it costs beside the bound, brokers before and after, batches, the commands.

It gives the order for a reader who is to run it: cost and proof first, then the picture of loads, the brokers, and the
commands to run. One file, no script, nothing from outside, readable on paper; the same plan gives the same bytes;
every text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from broker.units import format_size
from placement.planning.plan_tables import FLAG_COLUMNS
from spark_analysis.report.figure import WIDTH, clipped, figure, line, nice_axis, number, text
from spark_analysis.report.figures import UNKNOWN, count, plural
from spark_analysis.report.html import rendered
from spark_analysis.report.markup import tag

DRAWN_MAX: Final = 60
_ROW: Final = 22
_LEFT: Final = 150


def plan_page(summary: Mapping[str, Any], brokers: Sequence[Mapping[str, Any]], commands: str) -> str:
    """Return a plan as an HTML page; `brokers` are the rows of brokers.parquet, `commands` the text of commands.txt."""
    moved, bound = plural(summary["moved"], "replica"), summary["moved_bound"]
    if summary["moved_bytes_bound"] is not None:
        moved = f"{format_size(summary['moved_bytes'])} in {moved}"
        bound = format_size(summary["moved_bytes_bound"])
    return rendered(
        "plan.html",
        title=f"{summary['cluster']}: plan to {summary['goal']['kind']}",
        summary=summary,
        moved=moved,
        verb="moves" if summary["moved"] == 1 else "move",
        bound=count(bound) if isinstance(bound, int) else bound or "",
        costs=list(_costs(summary)),
        brokers=brokers,
        drawn_max=DRAWN_MAX,
        chart=_chart(brokers),
        heads=_HEADS,
        rows=[_row(row) for row in brokers],
        commands=commands.splitlines(),
    )


def _costs(summary: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    size = UNKNOWN if summary["moved_bytes"] is None else format_size(summary["moved_bytes"])
    replicas, least_bytes = summary["moved_bound"], summary["moved_bytes_bound"]
    yield "replicas that move", count(summary["moved"]), "" if replicas is None else count(replicas)
    yield "bytes that move", size, "" if least_bytes is None else format_size(least_bytes)
    yield "leaders that change", count(summary["leader_changes"]), count(summary["leader_changes_least"])
    yield "partitions that change", count(summary["changed_partition_count"]), ""
    seconds, least = summary["seconds_at_throttle"], summary["seconds_bound_in_batches"]
    if seconds is not None:
        yield "seconds at the throttle", count(round(seconds)), count(round(least))
    yield "batches", count(summary["batch_count"]), ""


_HEADS: Final = (
    "broker",
    "rack",
    "replicas before",
    "at the peak",
    "after",
    "in",
    "out",
    "allowed",
    "leads now",
    "preferred after",
    "bytes before",
    "at the peak",
    "after",
)


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = row["replicas_low"], row["replicas_high"]
    allowed = UNKNOWN if low is None else count(low) if low == high else f"{count(low)} to {count(high)}"
    if row["bytes_low"] is not None:
        allowed = f"{format_size(row['bytes_low'])} to {format_size(row['bytes_high'])}"
    sizes = (row[f"bytes_{name}"] for name in ("before", "peak", "after"))
    return (
        f"{row['broker']}{broker_marks(row)}",
        row["rack"] or UNKNOWN,
        *(count(row[f"replicas_{name}"]) for name in ("before", "peak", "after", "received", "given")),
        allowed,
        count(row["leaders_before"]),
        count(row["leaders_after"]),
        *(UNKNOWN if size is None else format_size(size) for size in sizes),
    )


def broker_marks(row: Mapping[str, Any]) -> str:
    """Return what a row of brokers.parquet is besides a broker, such as " (new)"; nothing for most."""
    marks = (
        ("is_added", " (added)" if row["replicas_before"] else " (new)"),
        ("is_removed", " (removed)"),
        *((column, f" ({flag.replace('_', ' ')})") for flag, column in FLAG_COLUMNS.items()),
    )
    return "".join(text for name, text in marks if row[name])


def _chart(brokers: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the bars: what stays, what arrives, what leaves, and the most that is allowed."""
    moving = sorted(brokers, key=lambda row: (-(row["replicas_received"] + row["replicas_given"]), row["broker"]))
    chosen = {row["broker"] for row in moving[:DRAWN_MAX]}
    drawn = [row for row in brokers if row["broker"] in chosen]
    loads = [row[f"replicas_{name}"] or 0 for row in drawn for name in ("before", "after", "high")]
    end, steps = nice_axis(float(max(loads, default=0)))
    scale, base = (WIDTH - _LEFT - 40) / end, _ROW * len(drawn) + 8
    parts = []
    for step in range(steps + 1):
        x = _LEFT + end * step / steps * scale
        label = text(x, base + 16, count(round(end * step / steps)), anchor="middle", class_="quiet")
        parts += [line(x, 0, x, base, "grid"), label]
    parts += [part for place, row in enumerate(drawn) for part in _bars(row, place * _ROW + 3, scale)]
    title = "Replicas of each broker before and after the plan"
    return figure("plan", title, f"{plural(len(drawn), 'broker')}, from 0 to {count(end)} replicas", base + 22, *parts)


def _bars(row: Mapping[str, Any], top: float, scale: float) -> Iterator[Markup]:
    tall = _ROW - 6
    kept = row["replicas_before"] - row["replicas_given"]
    name = clipped(f"{row['broker']}{broker_marks(row)} {row['rack'] or ''}".strip(), 22)
    yield text(_LEFT - 8, top + tall - 3, name, anchor="end")
    first = _LEFT + kept * scale
    for x, load, kind in (
        (_LEFT, kept, "kept"),
        (first, row["replicas_after"] - kept, "new"),
        (first, row["replicas_given"], "gone"),
    ):
        if load > 0:
            yield tag("rect", x=number(x), y=number(top), width=number(load * scale), height=tall, class_=kind)
    if row["replicas_high"] is not None and not row["is_removed"] and not row["is_fenced"]:
        x = _LEFT + row["replicas_high"] * scale
        yield line(x, top - 1, x, top + tall + 1, "bound")
