"""Count the partitions in each bad state now, and list them.

A tile holds a count and its share of the partitions whose state is known; where the input lacks the state the tile says
so and never shows 0. Of successive dumps of one cluster the last is now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final

import attrs

from spark_analysis.report.figures import count, plural, share_of
from spark_analysis.report.model import ClusterDetail, ClusterRow, Report
from spark_analysis.report.rest import Rest
from spark_analysis.report.rows import BrokerLoad, Violation
from spark_analysis.report.states import STATES, State

__all__ = (
    "BY_DUMP_MAX",
    "LISTED_MAX",
    "LIST_MAX",
    "partition_name",
    "query_of",
    "rackless_count",
    "state_lists",
    "tiles",
)

LIST_MAX: Final = 50
LISTED_MAX: Final = 50
BY_DUMP_MAX: Final = 24
_ALIASES: Final = {"fewer_racks": "rack-spread"}


@attrs.frozen
class StateCount:
    """Count the partitions in one state over all clusters that show the state; `found` is None if no cluster does.

    `partition_count` and `cluster_count` are of the clusters whose input says.
    """

    found: int | None
    partition_count: int
    cluster_count: int


@attrs.frozen
class Tile:
    """One tile: what is counted, how many there are, and the share; `target` is the list, `extra` a line more."""

    title: str
    found: int | None
    share: str
    target: str
    definition: str
    kind: str
    extra: str | None = None


@attrs.frozen
class StateList:
    """The first clusters with partitions in a state, of `whole`; those partitions, and brokers missing from ISRs."""

    state: State
    whole: int
    rows: Sequence[ClusterRow]
    missing: Sequence[tuple[ClusterRow, BrokerLoad]]
    partitions: Sequence[tuple[ClusterRow, Violation]]
    partition_count: int


def state_count(rows: Sequence[ClusterRow], state: State, rest: Rest) -> StateCount:
    """Return how many partitions of `rows` and `rest` are in `state`, over the clusters that show the state."""
    known = [row for row in rows if state.of(row.facts) is not None]
    more = rest.known(state.field)
    if not known and not more.count:
        return StateCount(None, 0, 0)
    found = sum(state.of(row.facts) or 0 for row in known) + (more.total(state.field) or 0)
    partitions = sum(row.facts.partition_count or 0 for row in known) + (more.total("partition_count") or 0)
    return StateCount(found, partitions, len(known) + more.count)


def rackless_count(report: Report) -> int:
    """Return the number of clusters of the present of which no broker's rack is known."""
    held = sum(1 for row in report.current_rows if row.facts.rack_count == 0)
    return held + report.rest.without_any("rack_count")


def tiles(report: Report) -> Iterator[Tile]:
    """Yield the tile of each state, and that of racks."""
    unit = "placement" if len(report.placers) > 1 else "cluster"
    for state in STATES:
        total, title = state_count(report.current_rows, state, report.rest), f"partitions {state.title}"
        target = f"list-{state.key}"
        if total.found is None:
            missing = "not simulated" if report.run.kind == "fleet" else "not in the dump"
            yield Tile(title, None, missing, target, state.key, "tile missing")
            continue
        share = f"{share_of(total.found, total.partition_count)} of {count(total.partition_count)} partitions"
        if total.partition_count == 0:
            share = "the input does not list all partitions"
        if total.cluster_count < report.current_count:
            share += f"; {count(total.cluster_count)} of {count(report.current_count)} {unit}s say"
        kind = "calm" if not total.found else "look" if state.alarm else "fact"
        yield Tile(title, total.found, share, target, state.key, f"tile {kind}", _by_placer(report, state))
    found = rackless_count(report)
    share = f"{share_of(found, report.current_count)} of {plural(report.current_count, unit)}"
    kind = "tile look" if found else "tile calm"
    yield Tile(f"{unit}s without rack information", found, share, "list-no-racks", "fewer_racks", kind)


def _by_placer(report: Report, state: State) -> str | None:
    if len(report.placers) < 2:
        return None
    parts = []
    for placer in report.placers:
        rows = [row for row in report.rows if row.facts.placer == placer]
        total = state_count(rows, state, report.rest.of_placer(placer))
        parts.append(f"{placer} {count(total.found)}")
    return " · ".join(parts)


def state_lists(report: Report) -> Iterator[StateList]:
    """Yield the list of each state with at least one partition."""
    current = report.current_rows
    places = {row.place for row in current}
    for state in STATES:
        rows = [row for row in current if state.of(row.facts)]
        whole = len(rows) + report.rest.with_any(state.field)
        if not whole:
            continue
        rows.sort(key=lambda row: (-(state.of(row.facts) or 0), row.place))
        found = state_count([row for row in report.rows if row.place in places], state, report.rest).found or 0
        missing = _missing(report, places) if state.key == "under_replicated" else []
        yield StateList(state, whole, rows[:LIST_MAX], missing, _partitions(report, places, state)[:LIST_MAX], found)


def _missing(report: Report, places: Set[int]) -> list[tuple[ClusterRow, BrokerLoad]]:
    return [
        (detail.row, broker)
        for detail in report.details
        if detail.row.place in places
        for broker in missing_most(detail)
    ]


def _partitions(report: Report, places: Set[int], state: State) -> list[tuple[ClusterRow, Violation]]:
    return [
        (detail.row, violation)
        for detail in report.details
        if detail.row.place in places
        for kept in detail.violations
        if state.names(kept.rows[0].constraint)
        for violation in kept.rows
    ]


def missing_most(detail: ClusterDetail) -> list[BrokerLoad]:
    """Return the brokers that are missing from ISRs, those missing from most first."""
    found = [broker for broker in detail.brokers if broker.missing_from_isr_count]
    return sorted(found, key=lambda broker: (-(broker.missing_from_isr_count or 0), broker.broker_id))


def partition_name(violation: Violation) -> str:
    """Return the name of a violation's partition, such as "orders-3", or what is known of it."""
    if violation.topic is None:
        return "the cluster"
    return violation.topic if violation.partition is None else f"{violation.topic}-{violation.partition}"


def query_of(problem: str, row: ClusterRow | None) -> str:
    """Return the DuckDB command that lists the partitions with a problem, of one cluster or of all of them."""
    where = f"list_contains(broken, '{_ALIASES.get(problem, problem.replace('_', '-'))}')"
    if row is not None:
        where += f" and cluster_id = {row.facts.cluster_id}"
    return f"duckdb -c \"from 'tables/partitions/*.parquet' where {where}\""
