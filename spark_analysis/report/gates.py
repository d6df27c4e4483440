"""Decide whether a report passes the gates that a script asks for with `--fail-on`.

A gate is the name of a state of partitions (leaderless, under-min-isr, …) or "uneven". A state that the input does not
show fails its gate, for nothing says that all is well; so does an input that cannot be used, and one that lists a part
of a cluster without a filter. Of moments of one cluster only the last is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from broker.errors import UsageError
from broker.known import Known
from broker.wholeness import FILTERED
from spark_analysis.report.figures import percent, plural, ppm
from spark_analysis.report.model import QUANTITIES, ClusterRow, Report
from spark_analysis.report.states import STATES

UNEVEN: Final = "uneven"
_STATES: Final = {state.key.replace("_", "-"): state for state in STATES}
GATES: Final = (*_STATES, UNEVEN)


def gates_of(text: str) -> tuple[str, ...]:
    """Return the gates in a list with commas; raise UsageError for a name that is none.

    >>> gates_of("leaderless, uneven")
    ('leaderless', 'uneven')
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    wrong = next((name for name in names if name not in GATES), None)
    if wrong is not None or not names:
        raise UsageError(f"--fail-on is {wrong or text!r}; allowed are {', '.join(GATES)}")
    return names


def failures(report: Report, gates: Sequence[str], *, tolerance: float) -> tuple[str, ...]:
    """Return a sentence for each cluster and gate that it fails, in order of rank and gate.

    `tolerance` is the share of replicas, leaders or bytes, 0 to 1, that may have to move. An input that could not be
    used fails the gates, whatever they are.
    """
    unusable = [f"{row.fault}; nothing is known of its cluster" for row in report.unusable.rows if gates]
    if (more := report.unusable.count - len(report.unusable.rows)) and gates:
        unusable.append(f"{plural(more, 'more input')} cannot be used")
    return (*unusable, *(_of_parts(report) if gates else ()), *_of_clusters(report, gates, tolerance))


def _of_parts(report: Report) -> Iterator[str]:
    """Yield a sentence for each cluster of which rows are missing; what a filtered list shows is whole in its kind."""
    for row in report.current_rows:
        partial = Known.of_text(row.facts.known).partial if row.facts.known else None
        if partial not in (None, FILTERED):
            yield f"{row.facts.cluster}: not the whole cluster: {partial}"


def _of_clusters(report: Report, gates: Sequence[str], tolerance: float) -> Iterator[str]:
    return (
        f"{row.facts.cluster}: {found}"
        for row in report.current_rows
        for gate in gates
        for found in (_uneven(row, tolerance) if gate == UNEVEN else _in_state(row, gate))
    )


def _in_state(row: ClusterRow, gate: str) -> Iterator[str]:
    state = _STATES[gate]
    found = state.of(row.facts)
    if found is None:
        yield f"the input does not show which partitions are {state.title}"
    elif found:
        yield state.sentence(found)


def _uneven(row: ClusterRow, tolerance: float) -> Iterator[str]:
    spreads = [row.over_brokers.of(name) for name in QUANTITIES]
    if not any(spreads):
        yield "the input does not show what the brokers hold"
    for spread in spreads:
        share = None if spread is None else spread.moves_share
        if spread is not None and share is not None and share > tolerance:
            yield f"{percent(ppm(share))} of {spread.quantity} have to move, more than {100 * tolerance:g} %"
