"""Write a plan as an HTML page: what it costs beside the bound, brokers before and after, batches, the commands.

It gives the order for a reader who is to run it: cost and proof first, then the picture of loads, the brokers, and the
commands to run. One file, no script, nothing from outside, readable on paper; the same plan gives the same bytes;
every text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from broker.drawing.element import Markup, lines, node
from broker.drawing.page import STYLE
from broker.drawing.scale import clipped, nice_axis, number
from broker.drawing.svg import document, style
from broker.units import format_size
from placement.planning.plan_tables import FLAG_COLUMNS
from spark_analysis.report.figures import UNKNOWN, count, plural
from spark_analysis.report.html import rendered

DRAWN_MAX: Final = 60
_ROW: Final = 22
_LEFT: Final = 150
_WIDTH: Final = 900
_ROLES: Final = ("page", "ink", "quiet", "rule", "accent", "best", "bar", "band")
_RULES: Final = (
    ".run .kept{fill:var(--bar)}.run .gone{fill:none;stroke:var(--ink);stroke-dasharray:3 2}"
    ".run .new{fill:var(--best)}.run .bound{stroke:var(--accent);stroke-width:2}.run .grid{stroke:var(--rule)}"
)
_CHART_STYLE: Final = style("run", *_ROLES, rules=_RULES)
_PAGE_RULES: Final = ".wide{overflow-x:auto}pre{white-space:pre-wrap;overflow-wrap:anywhere}"


def plan_page(summary: Mapping[str, Any], brokers: Sequence[Mapping[str, Any]], commands: str) -> str:
    """Return a plan as an HTML page; `brokers` are the rows of brokers.parquet, `commands` the text of commands.txt."""
    moved, bound = plural(summary["moved"], "replica"), summary["moved_bound"]
    if summary["moved_bytes_bound"] is not None:
        moved = f"{format_size(summary['moved_bytes'])} in {moved}"
        bound = format_size(summary["moved_bytes_bound"])
    return rendered(
        "plan.html",
        title=f"{summary['cluster']}: plan to {summary['goal']['kind']}",
        style=STYLE + _PAGE_RULES,
        chart_style=_CHART_STYLE,
        summary=summary,
        moved=moved,
        verb="moves" if summary["moved"] == 1 else "move",
        bound=count(bound) if isinstance(bound, int) else bound or "",
        costs=list(_costs(summary)),
        brokers=brokers,
        drawn_max=DRAWN_MAX,
        chart=Markup(_chart(brokers)),
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


def _chart(brokers: Sequence[Mapping[str, Any]]) -> str:
    """Return the bars: what stays, what arrives, what leaves, and the most that is allowed."""
    moving = sorted(brokers, key=lambda row: (-(row["replicas_received"] + row["replicas_given"]), row["broker"]))
    chosen = {row["broker"] for row in moving[:DRAWN_MAX]}
    drawn = [row for row in brokers if row["broker"] in chosen]
    loads = [row[f"replicas_{name}"] or 0 for row in drawn for name in ("before", "after", "high")]
    most = max(loads, default=0)
    end, steps = nice_axis(float(most))
    scale = (_WIDTH - _LEFT - 40) / end
    height = _ROW * len(drawn) + 30
    parts = [_grid(end * step / steps, scale, height) for step in range(steps + 1)]
    parts += [_bars(row, place, scale) for place, row in enumerate(drawn)]
    title = "Replicas of each broker before and after the plan"
    return document("run", title, (_WIDTH, height), _CHART_STYLE, parts)


def _grid(value: float, scale: float, height: int) -> Markup:
    x = number(_LEFT + value * scale)
    label = node("text", count(round(value)), x=x, y=height - 6, text_anchor="middle", class_="q")
    return lines(node("path", d=f"M{x} 0V{height - 22}", class_="grid"), label)


def _bars(row: Mapping[str, Any], place: int, scale: float) -> Markup:
    top, tall = place * _ROW + 3, _ROW - 6
    kept = row["replicas_before"] - row["replicas_given"]
    name = clipped(f"{row['broker']}{broker_marks(row)} {row['rack'] or ''}".strip(), 22)
    first, after = _LEFT + kept * scale, row["replicas_after"] * scale

    def bar(x: float, width: float, class_: str) -> Markup:
        return node("rect", x=number(x), y=top, width=number(max(width, 0)), height=tall, class_=class_)

    parts = [
        node("text", name, x=_LEFT - 8, y=top + tall - 3, text_anchor="end"),
        bar(_LEFT, kept * scale, "kept"),
        bar(first, after - kept * scale, "new") if row["replicas_received"] else None,
        bar(first, row["replicas_given"] * scale, "gone") if row["replicas_given"] else None,
    ]
    if row["replicas_high"] is not None and not row["is_removed"] and not row["is_fenced"]:
        x = number(_LEFT + row["replicas_high"] * scale)
        parts.append(node("path", d=f"M{x} {top - 1}v{tall + 2}", class_="bound"))
    return lines(*(part for part in parts if part is not None))
