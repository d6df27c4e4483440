"""Show group runs side by side: a table with one column per run, and the lines below it.

Source: ours; rebalance-latency-avg, -max, rebalance-total and failed-rebalance-total are Java's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from broker.printable import printable
from replication.groups.alone.group_run import GroupRun, text_of


def figures(group_runs: Sequence[GroupRun]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rows of the table: a name, and a cell for each run."""
    for name, show in _ROWS.items():
        yield name, tuple(show(group_run) for group_run in group_runs)
    for kind, of in _COUNTERS.items():
        for name in sorted({name for group_run in group_runs for name in of(group_run)}):
            yield (
                f"{kind}: {_COMMITS.get(name, name)}",
                tuple(f"{of(group_run).get(name, 0):,}" for group_run in group_runs),
            )


def lines(group_runs: Sequence[GroupRun]) -> Iterator[str]:
    """Yield the applications that ended by an error, and every invariant that was broken."""
    for group_run in group_runs:
        for death in group_run.deaths:
            yield f"{group_run.protocol.value}: at {death.at_ms:,} ms {printable(death.text)}"
    for group_run in group_runs:
        for finding in group_run.findings:
            yield f"{group_run.protocol.value}: BROKEN {printable(text_of(finding))}"
    if all(group_run.is_clean for group_run in group_runs):
        yield "G1 to G9 hold"


def _seconds(of: Callable[[GroupRun], int]) -> Callable[[GroupRun], str]:
    return lambda group_run: f"{of(group_run) / 1_000:,.1f}"


def _count(of: Callable[[GroupRun], int]) -> Callable[[GroupRun], str]:
    return lambda group_run: f"{of(group_run):,}"


_COUNTERS: Final[dict[str, Callable[[GroupRun], Mapping[str, int]]]] = {
    "commits": lambda group_run: group_run.commits,
    "gone": lambda group_run: group_run.departures,
}
"""What is counted by name: partitions in commits, and members that are gone."""
_COMMITS: Final = {"NONE": "accepted", "REQUEST_TIMED_OUT": "lost on the way"}
_ROWS: Final[dict[str, Callable[[GroupRun], str]]] = {
    "rebalances (generations, epochs)": _count(lambda group_run: group_run.rebalance_count),
    "rebalance-latency-avg ms": lambda group_run: f"{group_run.rebalance_latency_avg:,.1f}",
    "rebalance-latency-max ms": _count(lambda group_run: group_run.rebalance_latency_max),
    "rebalance-latency-total ms": _count(lambda group_run: group_run.rebalance_latency_total),
    "rebalance-total": _count(lambda group_run: group_run.rebalance_total),
    "failed-rebalance-total": _count(lambda group_run: group_run.failed_rebalance_total),
    "partitions unowned s": _seconds(lambda group_run: group_run.unowned_ms),
    "unowned s, worst partition": _seconds(lambda group_run: group_run.unowned_ms_max),
    "claimed by two (zombies) s": _seconds(lambda group_run: group_run.shared_ms),
    "moves": _count(lambda group_run: group_run.move_count),
    "moves, least possible": _count(lambda group_run: group_run.least_move_count),
    "given up and got back": _count(lambda group_run: group_run.return_count),
    "records read": _count(lambda group_run: group_run.read_count),
    "of these read again": _count(lambda group_run: group_run.duplicate_count),
    "lag max": _count(lambda group_run: group_run.lag_max),
}
"""The lines of the table: a name and how a run's value is shown."""
