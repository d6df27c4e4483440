"""Show one cluster: its measures beside their optimum, its brokers, racks, shared partitions, topics and violations.

How: each cluster is folded under one line, its worst finding; inside are plain tables and drawings that need no script.
A shortened list says how long the whole one is and where it stands.

Example: the line of a cluster: "3. orders-eu: broker 7 leads 2.1 times its share; moving 14 leaders would mend it".

Left out: lists of partitions other than violations; the Parquet tables beside the page have them.
"""

from __future__ import annotations

from typing import Final

from broker.drawing.element import Content, Markup, tag
from placement.balance.out_of_sync import brokers_in_words
from spark_analysis.report.advice import advice_part
from spark_analysis.report.broker_chart import load_of
from spark_analysis.report.brokers import brokers_part, load_cell
from spark_analysis.report.figures import count, decimal, percent, plural, ppm, quantity, share_of
from spark_analysis.report.heat_map import heat_map
from spark_analysis.report.model import QUANTITIES, SCOPES, ClusterDetail, Report
from spark_analysis.report.out_of_sync import cause_line
from spark_analysis.report.parts import Cell, Header, folded, note, section, table
from spark_analysis.report.rows import Spread, TopicSpread
from spark_analysis.report.states import is_uneven
from spark_analysis.report.violations import violations_part

OPEN_MAX: Final = 1  # A page about one cluster shows it unfolded.


def clusters_section(report: Report) -> Markup:
    """Return the section of the clusters that are shown in full."""
    shown = len(report.details)
    rest = f"The worst {count(shown)} of {count(report.row_count)}; the others are in tables/. "
    return section(
        "clusters",
        "One cluster at a time",
        note(rest if shown < report.row_count else "", "Unfold a line to see the cluster."),
        *(_cluster(detail, report) for detail in report.details),
    )


def _cluster(detail: ClusterDetail, report: Report) -> Markup:
    facts, row = detail.row.facts, detail.row
    several, shown = len(report.placers) > 1, len(report.details)
    placer = tag("span", f" placed by {facts.placer}", class_="quiet") if several else None
    summary = tag(
        "span",
        tag("b", f"{row.place}. ", facts.cluster),
        placer,
        ": ",
        tag("span", row.worst, class_="calm" if row.calm else "alert"),
    )
    return folded(
        summary,
        _facts(detail),
        cause_line(detail),
        advice_part(detail, report),
        _measures(detail, report.run.tolerance),
        brokers_part(detail, shown_count=shown, tolerance=report.run.tolerance),
        _racks(detail),
        _shared(detail),
        _log_dirs(detail),
        _topics(detail, report.run.tolerance),
        violations_part(detail, report),
        identifier=row.anchor,
        open_=shown <= OPEN_MAX,
    )


def _facts(detail: ClusterDetail) -> Markup:
    facts = detail.row.facts
    racks = plural(facts.rack_count, "rack") if facts.rack_count else "racks not known"
    if facts.rack_count and facts.rack_broker_count_min != facts.rack_broker_count_max:
        racks += f" of {count(facts.rack_broker_count_min)} to {count(facts.rack_broker_count_max)} brokers"
    parts = [plural(facts.broker_count, "broker"), racks]
    if facts.rack_count and facts.unracked_broker_count:
        parts.append(f"{count(facts.unracked_broker_count)} without a rack")
    if facts.fenced_broker_count:
        parts.append(f"{count(facts.fenced_broker_count)} fenced")
    for state in ("in controlled shutdown", "cordoned"):
        found = [broker.broker_id for broker in detail.brokers if state in broker.states]
        if found:
            parts.append(f"{brokers_in_words(found)} {state}")
    for value, noun in (
        (facts.topic_count, "topic"),
        (facts.partition_count, "partition"),
        (facts.replica_count, "replica"),
    ):
        parts.append(f"{noun}s not in the dump" if value is None else plural(value, noun))
    if facts.size_bytes is not None:
        parts.append(quantity(facts.size_bytes, "bytes"))
    origin = f"{facts.source} ({facts.format})" + (f", shape {facts.shape}" if facts.shape else "")
    return tag("p", " · ".join(parts), tag("br"), tag("span", f"from {origin}", class_="quiet"), class_="line")


def _measures(detail: ClusterDetail, tolerance: float) -> Markup | None:
    if not detail.spreads:
        return note("Nothing to measure: the input does not say what the brokers hold.")
    ordered = sorted(detail.spreads, key=lambda spread: (SCOPES.index(spread.scope), QUANTITIES.index(spread.quantity)))
    headers = (
        Header("spread", "name"), Header("groups", "num", "group_count"), Header("least", "num", "min"),
        Header("mean", "num", "mean"), Header("most", "num", "max"), Header("held by", "text", "max_group"),
        Header("most / mean (best)", "num", "max_over_mean"), Header("CV (best)", "num", "cv"),
        Header("stdev (best)", "num", "stdev"), Header("Gini (best)", "num", "gini"), Header("to move", "num", "moves"),
        Header("share to move", "num", "moves_share"),
    )  # fmt: skip
    rows = [_measure_row(spread, tolerance) for spread in ordered]
    return table("Measures, each with the best value that can be reached in brackets; for bytes a bound", headers, rows)


def _measure_row(spread: Spread, tolerance: float) -> tuple[Content | Cell, ...]:
    unit = spread.quantity
    mean, stdev, best_stdev = (
        quantity(value, unit) if unit == "bytes" else decimal(value, 1)
        for value in (spread.mean, spread.stdev, spread.best_stdev)
    )
    return (
        f"{unit} over {spread.scope}s",
        count(spread.group_count),
        quantity(spread.min, unit),
        mean,
        quantity(spread.max, unit),
        spread.max_group,
        _with_best(decimal(spread.max_over_mean), decimal(spread.best_max_over_mean)),
        _with_best(decimal(spread.cv), decimal(spread.best_cv)),
        _with_best(stdev, best_stdev),
        _with_best(decimal(spread.gini), decimal(spread.best_gini)),
        ("≥ " if spread.moves and not spread.moves_exact else "") + quantity(spread.moves, unit),
        Cell(percent(ppm(spread.moves_share)), alert=is_uneven(spread, tolerance) and spread.scope == "broker"),
    )


def _with_best(value: str, best: str) -> Markup:
    return tag("span", value, tag("span", f" ({best})", class_="quiet"))


def _racks(detail: ClusterDetail) -> Markup | None:
    if not any(rack.rack is not None for rack in detail.racks):
        return None
    known = [
        name
        for name in ("replicas", "leaders", "bytes")
        if any(load_of(rack, name) is not None for rack in detail.racks)
    ]
    totals = {name: sum(load_of(rack, name) or 0 for rack in detail.racks) for name in known}
    broker_count = sum(rack.broker_count for rack in detail.racks)
    headers = [Header("rack"), Header("brokers", "num"), Header("share of brokers", "num")]
    for name in known:
        headers += [Header(name, "num"), Header(f"share of {name}", "num")]
    rows = []
    for rack in detail.racks:
        cells: list[Content | Cell] = [
            "no rack" if rack.rack is None else rack.rack,
            count(rack.broker_count),
            share_of(rack.broker_count, broker_count),
        ]
        for name in known:
            cells += [load_cell(rack, name, None), share_of(load_of(rack, name), totals[name])]
        rows.append(cells)
    return tag(
        "div", tag("h4", "Racks"), table("Racks, and their share of brokers and load", headers, rows, sortable=True)
    )


def _shared(detail: ClusterDetail) -> Markup | None:
    drawn = heat_map(detail.row.anchor, detail.brokers, detail.pairs)
    return None if drawn is None else tag("div", tag("h4", "Partitions shared by two brokers"), drawn)


def _log_dirs(detail: ClusterDetail) -> Markup | None:
    """Return the table of log directories, those with errors first, then the fullest."""
    listed = detail.log_dirs
    if not listed.rows:
        return None
    of_broker = {broker.broker_id: broker.size_bytes for broker in detail.brokers}
    headers = (
        Header("broker", "num"), Header("log directory"), Header("replicas", "num"), Header("future replicas", "num"),
        Header("size", "num"), Header("size / broker's bytes", "num"), Header("state"),
    )  # fmt: skip
    rows = [
        (
            str(each.broker_id),
            each.log_dir,
            count(each.replica_count),
            count(each.future_replica_count),
            Cell(quantity(each.size_bytes, "bytes"), float(each.size_bytes)),
            share_of(each.size_bytes, of_broker.get(each.broker_id) or 0),
            Cell(each.error or "usable", alert=each.error is not None),
        )
        for each in listed.rows
    ]
    shown = len(rows)
    caption = "All log directories" if shown == listed.count else f"The {shown} fullest of {count(listed.count)}"
    return tag("div", tag("h4", "Log directories"), table(caption, headers, rows, sortable=True))


def _topics(detail: ClusterDetail, tolerance: float) -> Markup | None:
    if not detail.topics.rows:
        return None
    headers = [
        Header("topic"), Header("partitions", "num"), Header("factor", "num"), Header("brokers used", "num"),
        Header("most replicas on one broker (best)", "num"), Header("replicas to move", "num"),
        Header("most leaders on one broker (best)", "num"), Header("leaders to move", "num"),
    ]  # fmt: skip
    sized = any(topic.size_bytes is not None for topic in detail.topics.rows)
    if sized:
        headers.append(Header("size", "num"))
    rows = [_topic_row(topic, tolerance, sized=sized) for topic in detail.topics.rows]
    shown = len(detail.topics.rows)
    caption = (
        "All topics"
        if shown == detail.topics.count
        else f"The {shown} of {count(detail.topics.count)} topics that skew most"
    )
    return tag(
        "div",
        tag("h4", "Topics that skew most"),
        note(
            "Each topic is held against the best spread of its own partitions that can be reached: its replicas on as "
            "many racks as possible, nothing new on fenced brokers. ≥ marks a lower bound."
        ),
        table(caption, headers, rows, sortable=True),
    )


def _topic_row(topic: TopicSpread, tolerance: float, *, sized: bool) -> tuple[Content | Cell, ...]:
    size = Cell(quantity(topic.size_bytes, "bytes"), None if topic.size_bytes is None else float(topic.size_bytes))
    return (
        topic.topic,
        count(topic.partition_count),
        count(topic.replication_factor),
        count(topic.broker_count),
        _count_with_best(topic.replica_max, topic.replica_best_max),
        _moves(topic.replica_moves, topic.replica_moves_exact, tolerance * topic.replica_count),
        _count_with_best(topic.leader_max, topic.leader_best_max),
        _moves(topic.leader_moves, topic.leader_moves_exact, tolerance * topic.partition_count),
        *((size,) if sized else ()),
    )


def _count_with_best(value: int | None, best: int | None) -> Content:
    return "–" if value is None else _with_best(count(value), count(best))


def _moves(moves: int | None, is_exact: bool | None, tolerated: float) -> Content | Cell:
    """Return a cell of moves; more than is tolerated is accented, a lower bound is marked."""
    if moves is None:
        return count(None)
    return Cell(("" if is_exact else "≥ ") + count(moves), float(moves), alert=moves > tolerated)
