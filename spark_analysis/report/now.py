"""Show the partitions in a bad state now: a tile for each bad state, and the partitions behind it.

What it decides: a tile holds a count, its share of the partitions whose state is known, and a link to the list. A count
of 0 is shown quietly, a state that is no alarm without the accent colour; where the input lacks the state the tile says
so and never shows 0. Of successive dumps of one cluster the last is now; those before it are not here (moments.py).

Example: two dumps, one of which carries no ISR: "3 · 1.2 % of 250 partitions; 1 of 2 clusters say".

Source: `spark_analysis.report.states` for the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from broker.drawing.element import Markup, tag
from spark_analysis.report.figures import count, plural, share_of
from spark_analysis.report.model import ClusterRow, Report
from spark_analysis.report.moments import states_table
from spark_analysis.report.out_of_sync import out_of_sync_table
from spark_analysis.report.parts import Header, brokers_in_racks, cluster_link, folded, note, section, table
from spark_analysis.report.queries import rest_of
from spark_analysis.report.rest import Rest
from spark_analysis.report.states import STATES, State
from spark_analysis.report.violations import partition_name

LIST_MAX: Final = 50
BY_DUMP_MAX: Final = 24


@attrs.frozen
class StateCount:
    """Count the partitions in one state over all clusters that show the state; `found` is None if no cluster does.

    `partition_count` and `cluster_count` are of the clusters whose input says.
    """

    found: int | None
    partition_count: int
    cluster_count: int


def state_count(rows: Sequence[ClusterRow], state: State, rest: Rest) -> StateCount:
    """Return how many partitions of `rows` and `rest` are in `state`, over the clusters that show the state."""
    saying = [row for row in rows if state.of(row.facts) is not None]
    more = rest.saying(state.field)
    if not saying and not more.count:
        return StateCount(None, 0, 0)
    found = sum(state.of(row.facts) or 0 for row in saying) + (more.total(state.field) or 0)
    partitions = sum(row.facts.partition_count or 0 for row in saying) + (more.total("partition_count") or 0)
    return StateCount(found, partitions, len(saying) + more.count)


def rackless_count(report: Report) -> int:
    """Return the number of clusters of the present of which no broker's rack is known."""
    held = sum(1 for row in report.current_rows if row.facts.rack_count == 0)
    return held + report.rest.without_any("rack_count")


def now_section(report: Report) -> Markup:
    """Return the tiles, and under them the list of each state with at least one partition."""
    rows = report.current_rows
    return section(
        "now",
        "Is anything wrong now?",
        _moment(report),
        _unusable(report),
        tag("ul", *(_state_tile(report, state) for state in STATES), _rack_tile(report), class_="tiles"),
        *(_state_list(report, rows, state) for state in STATES),
        _rack_list(report, rows),
        _states_by_dump(report),
    )


def _moment(report: Report) -> Markup | None:
    if not report.moments:
        return None
    names = ", ".join(row.facts.cluster for row in report.current_rows[:5])
    return note(
        f"Now is the last of successive dumps: {names}. The dumps before it stand under ",
        tag("a", "what changed", href="#changes"),
        ".",
    )


def _unusable(report: Report) -> Markup | None:
    found = report.unusable.count
    if not found:
        return None
    whose = "its cluster" if found == 1 else "their clusters"
    return tag(
        "p",
        tag("a", f"{plural(found, 'input')} cannot be used", href="#rejects", class_="alert"),
        f": nothing here is of {whose}.",
    )


def _states_by_dump(report: Report) -> Markup | None:
    if report.run.kind != "dumps" or not 1 < len(report.current_rows) <= BY_DUMP_MAX:
        return None
    ordered = sorted(report.current_rows, key=lambda row: row.facts.cluster_id)
    drawn = states_table(report, ordered, "Partitions in each state, dumps in the order given")
    return None if drawn is None else tag("div", tag("h3", "Dump by dump"), drawn)


def _state_tile(report: Report, state: State) -> Markup:
    total = state_count(report.current_rows, state, report.rest)
    if total.found is None:
        missing = "not simulated" if report.run.kind == "fleet" else "not in the dump"
        return _tile(f"partitions {state.title}", None, missing, None, state.key)
    share = f"{share_of(total.found, total.partition_count)} of {count(total.partition_count)} partitions"
    if total.partition_count == 0:
        share = "the input does not list all partitions"
    if total.cluster_count < report.current_count:
        share += f"; {count(total.cluster_count)} of {count(report.current_count)} {_rows_are(report)}s say"
    target = f"list-{state.key}" if total.found else None
    looks = "look" if state.alarm else "fact"
    return _tile(
        f"partitions {state.title}", total.found, share, target, state.key, _by_placer(report, state), looks=looks
    )


def _by_placer(report: Report, state: State) -> str | None:
    if len(report.placers) < 2:
        return None
    parts = []
    for placer in report.placers:
        rows = [row for row in report.rows if row.facts.placer == placer]
        total = state_count(rows, state, report.rest.of_placer(placer))
        parts.append(f"{placer} {count(total.found)}")
    return " · ".join(parts)


def _rows_are(report: Report) -> str:
    """Return the noun for a row: "placement" when several placers placed the clusters, otherwise "cluster"."""
    return "placement" if len(report.placers) > 1 else "cluster"


def _rack_tile(report: Report) -> Markup:
    found, unit = rackless_count(report), _rows_are(report)
    share = f"{share_of(found, report.current_count)} of {plural(report.current_count, unit)}"
    return _tile(f"{unit}s without rack information", found, share, "list-no-racks" if found else None, "fewer_racks")


def _tile(
    title: str,
    found: int | None,
    share: str,
    target: str | None,
    definition: str,
    extra: str | None = None,
    looks: str = "look",
) -> Markup:
    value = tag("b", count(found)) if found is not None else tag("b", share, class_="missing")
    kind = "tile missing" if found is None else f"tile {looks}" if found else "tile calm"
    link = (
        tag("a", "show the list", tag("span", f" of {title}", class_="unseen"), href=f"#{target}") if target else None
    )
    meaning = tag("a", "meaning", tag("span", f" of {title}", class_="unseen"), href=f"#def-{definition}")
    return tag(
        "li",
        value,
        tag("span", title, class_="title"),
        tag("span", share, class_="share") if found is not None else None,
        tag("span", extra, class_="share") if extra else None,
        tag("span", link, " " if link else None, meaning, class_="links"),
        class_=kind,
    )


def _state_list(report: Report, current: Sequence[ClusterRow], state: State) -> Markup | None:
    rows = [row for row in current if state.of(row.facts)]
    whole = len(rows) + report.rest.with_any(state.field)
    if not whole:
        return None
    rows.sort(key=lambda row: (-(state.of(row.facts) or 0), row.place))
    full = {detail.row.anchor for detail in report.details}
    several = len(report.placers) > 1
    headers = (
        Header("cluster"),
        *((Header("placer"),) if several else ()),
        Header("partitions", "num"),
        Header("share", "num"),
    )
    body = [
        (
            cluster_link(row.anchor if row.anchor in full else None, row.facts.cluster),
            *((row.facts.placer,) if several else ()),
            count(state.of(row.facts)),
            share_of(state.of(row.facts), row.facts.partition_count),
        )
        for row in rows[:LIST_MAX]
    ]
    more = "" if whole == len(body) else f", the first {len(body)} shown"
    places = {row.place for row in current}
    return folded(
        f"Partitions {state.title}: {plural(whole, 'placement' if several else 'cluster')}{more}",
        table(f"Partitions {state.title}, by cluster", headers, body, sortable=True),
        out_of_sync_table(report, places) if state.key == "under_replicated" else None,
        _partition_list(report, places, state),
        identifier=f"list-{state.key}",
    )


def _partition_list(report: Report, places: set[int], state: State) -> Markup | None:
    found = [
        (detail.row, violation)
        for detail in report.details
        if detail.row.place in places
        for kept in detail.violations
        if state.names(kept.rows[0].constraint)
        for violation in kept.rows
    ]
    if not found:
        return None
    headers = (Header("partition"), Header("cluster"), Header("brokers (racks)"), Header("what"))
    rows = [
        (
            partition_name(violation),
            cluster_link(row.anchor, row.facts.cluster),
            brokers_in_racks(violation.brokers, violation.racks),
            violation.detail,
        )
        for row, violation in found[:LIST_MAX]
    ]
    held = [row for row in report.rows if row.place in places]
    whole = state_count(held, state, report.rest).found or 0
    title = f"Partitions {state.title}: the first of each cluster, worst cluster first"
    return tag(
        "div",
        table(title if len(rows) < whole else f"Partitions {state.title}, worst cluster first", headers, rows),
        rest_of(report, len(rows), whole, state.key) if len(rows) < whole else None,
    )


def _rack_list(report: Report, current: Sequence[ClusterRow]) -> Markup | None:
    rows, whole = [row for row in current if row.facts.rack_count == 0], rackless_count(report)
    if not whole:
        return None
    full = {detail.row.anchor for detail in report.details}
    body = [
        (
            cluster_link(row.anchor if row.anchor in full else None, row.facts.cluster),
            row.facts.source,
            count(row.facts.broker_count),
        )
        for row in rows[:LIST_MAX]
    ]
    more = "" if whole == len(body) else f", the first {len(body)} shown"
    headers = (Header("cluster"), Header("source"), Header("brokers", "num"))
    title = f"{_rows_are(report).capitalize()}s without rack information"
    return folded(
        f"{title}: {count(whole)}{more}",
        note("Whether replicas stand in different racks is unknown. A racks file supplies what dumps leave out."),
        table(title, headers, body),
        identifier="list-no-racks",
    )
