"""Say of each cluster what got worse since it was dumped before.

Worse are: more partitions in a state that is an alarm, unclean elections in between, more fenced brokers, and a load
that was even within the tolerance and is not any more. A count that is not known at one of the two moments has not
risen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from placement.balance.changes import UNCLEAN_ELECTION
from spark_analysis.report.figures import count, percent, plural, ppm
from spark_analysis.report.model import QUANTITIES, ClusterRow, Report
from spark_analysis.report.states import STATES, cause_in_words, is_uneven

__all__ = ("courses",)

_WORDS_MAX: Final = 3
UNCLEAN: Final = "unclean_election_count"
UNDER_REPLICATED: Final = "under_replicated_count"
FENCED: Final = "fenced_broker_count"


@attrs.frozen
class Worse:
    """Hold one measure that got worse: its stable name, its values at both moments, and a sentence."""

    measure: str
    before: float
    after: float
    words: str


@attrs.frozen
class Course:
    """Hold a cluster of the present, its moment before, and what got worse; `before` is None for a first dump.

    `missed` is the last moment of other clusters if this one was not dumped then.
    """

    row: ClusterRow
    before: ClusterRow | None
    name: str
    moment: str
    moment_before: str | None
    missed: str | None
    former_name: str | None
    worse: tuple[Worse, ...]

    @property
    def heading(self) -> str:
        """Return the cluster and the moment since which it is compared."""
        return self.name if self.moment_before is None else f"{self.name} since {self.moment_before}"

    @property
    def words(self) -> str:
        """Return what got worse in one line, the gravest three in full."""
        parts = [one.words for one in self.worse[:_WORDS_MAX]]
        if more := len(self.worse) - len(parts):
            parts.append(f"{count(more)} more")
        if not parts:
            parts = ["nothing got worse" if self.before is not None else "no dump before this one"]
        if self.former_name:
            parts.append(f"called {self.former_name} before")
        if self.missed:
            parts.insert(0, f"no dump of {self.missed}, the last is of {self.moment}")
        return "; ".join(parts)


def courses(report: Report) -> tuple[Course, ...]:
    """Return the clusters of the present, those that got worse first; none where no dump is a moment of a cluster."""
    if not report.moments and not any(one.cluster for one in report.run.given):
        return ()
    by_id = {row.facts.cluster_id: row for row in report.rows}
    found = [_course(report, row, by_id.get(row.facts.previous_cluster_id)) for row in report.current_rows]
    return tuple(sorted(found, key=lambda one: (not one.worse, not one.missed, one.row.place)))


def _course(report: Report, row: ClusterRow, before: ClusterRow | None) -> Course:
    given, earlier = report.given_of(row), None if before is None else report.given_of(before)
    name = (given.cluster if given is not None else None) or row.facts.cluster
    former = None if earlier is None else earlier.cluster
    return Course(
        row=row,
        before=before,
        name=name,
        moment=_moment(report, row),
        moment_before=None if before is None else _moment(report, before),
        missed=None if given is None else given.missed,
        former_name=former if former != name else None,
        worse=() if before is None else tuple(_worse(report, before, row)),
    )


def _moment(report: Report, row: ClusterRow) -> str:
    given = report.given_of(row)
    return (given.moment if given is not None else None) or row.facts.cluster


def _worse(report: Report, before: ClusterRow, after: ClusterRow) -> Iterator[Worse]:
    unclean = sum(
        kept.count
        for step in report.changes
        if (step.from_cluster, step.to_cluster) == (before.facts.cluster, after.facts.cluster)
        for kept in step.kinds
        if kept.rows[0].change == UNCLEAN_ELECTION
    )
    if unclean:
        yield Worse(UNCLEAN, 0, unclean, f"{plural(unclean, 'unclean election')}: records may be lost")
    for state in STATES:
        was, found = state.of(before.facts), state.of(after.facts)
        if state.alarm and was is not None and found is not None and found > was:
            cause = cause_in_words(after.facts, of_them=True) if state.field == UNDER_REPLICATED else None
            words = f"{state.sentence(found)} ({count(was)} before)" + (f", {cause}" if cause else "")
            yield Worse(state.field, was, found, words)
    was, found = before.facts.fenced_broker_count or 0, after.facts.fenced_broker_count or 0
    if found > was:
        yield Worse(FENCED, was, found, f"{plural(found, 'fenced broker')} ({count(was)} before)")
    for name in QUANTITIES:
        early, late = before.over_brokers.of(name), after.over_brokers.of(name)
        tolerance = report.run.tolerance
        if early is not None and late is not None and is_uneven(late, tolerance) and not is_uneven(early, tolerance):
            shares = percent(ppm(late.moves_share)), percent(ppm(early.moves_share))
            words = f"{shares[0]} of {name} have to move ({shares[1]} before)"
            yield Worse(f"moves_share.{name}", early.moves_share or 0, late.moves_share or 0, words)


def since_json(report: Report) -> list[dict[str, Any]]:
    """Return the clusters for programs, those that got worse first, with both values of each measure that did."""
    return [
        {
            "cluster": one.name,
            "now": one.row.facts.cluster,
            "before": None if one.before is None else one.before.facts.cluster,
            "moment": one.moment,
            "moment_before": one.moment_before,
            "missed_moment": one.missed,
            "former_name": one.former_name,
            "worse": [attrs.asdict(each) for each in one.worse],
        }
        for one in courses(report)
    ]


def since_lines(found: Sequence[Course], shown_max: int) -> list[str]:
    """Return the lines for a terminal: a cluster a line, those that got worse or missed a moment first.

    A single cluster has one line, several have a head before theirs.
    """
    if len(found) == 1:
        return [f"Since {found[0].moment_before or 'before'}: {found[0].words}"]
    shown = [one for one in found if one.worse or one.missed or one.former_name]
    lines = [f"  {one.heading}: {one.words}" for one in shown[:shown_max]]
    if more := len(shown) - len(lines):
        lines.append(f"  {plural(more, 'more cluster')} got worse or missed a moment: see the report")
    first = [one.name for one in found if one.before is None and one not in shown]
    no_worse = [one.name for one in found if one.before is not None and one not in shown]
    for names, said in ((no_worse, "nothing got worse"), (first, "no dump before this one")):
        if names:
            lines.append(f"  {', '.join(names[:5])}{f' and {len(names) - 5:,} more' if len(names) > 5 else ''}: {said}")
    return ["What got worse since the last time:", *lines] if lines else []
