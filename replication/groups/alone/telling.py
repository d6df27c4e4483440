"""Lives side by side, for people: the lines of a table with a column a protocol, and what has to be said besides.

Decides nothing; it shows.

Source: ours; rebalance-latency-avg, -max, rebalance-total and failed-rebalance-total are Java's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from broker.printable import printable
from replication.groups.alone.life import Life


def figures(lives: Sequence[Life]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of the table: a name, and a cell for each life."""
    for name, show in _ROWS.items():
        yield name, tuple(show(life) for life in lives)
    for kind, of in _COUNTERS.items():
        for name in sorted({name for life in lives for name in of(life)}):
            yield f"{kind}: {_COMMITS.get(name, name)}", tuple(f"{of(life).get(name, 0):,}" for life in lives)


def lines(lives: Sequence[Life]) -> Iterator[str]:
    """Yield what happened to programs, and every rule that was broken."""
    for life in lives:
        for death in life.deaths:
            yield f"{life.mode.value}: at {death.at_ms:,} ms {printable(death.text)}"
    for life in lives:
        for finding in life.findings:
            yield f"{life.mode.value}: BROKEN {printable(str(finding))}"
    if all(life.is_clean for life in lives):
        yield "G1 to G9 hold"


def _seconds(of: Callable[[Life], int]) -> Callable[[Life], str]:
    return lambda life: f"{of(life) / 1_000:,.1f}"


def _count(of: Callable[[Life], int]) -> Callable[[Life], str]:
    return lambda life: f"{of(life):,}"


_COUNTERS: Final[dict[str, Callable[[Life], Mapping[str, int]]]] = {
    "commits": lambda life: life.commits,
    "gone": lambda life: life.departures,
}
"""What is counted by name: partitions in commits, and members that are gone."""
_COMMITS: Final = {"NONE": "accepted", "REQUEST_TIMED_OUT": "lost on the way"}
_ROWS: Final[dict[str, Callable[[Life], str]]] = {
    "rebalances (generations, epochs)": _count(lambda life: life.rebalance_count),
    "rebalance-latency-avg ms": lambda life: f"{life.rebalance_latency_avg:,.1f}",
    "rebalance-latency-max ms": _count(lambda life: life.rebalance_latency_max),
    "rebalance-latency-total ms": _count(lambda life: life.rebalance_latency_total),
    "rebalance-total": _count(lambda life: life.rebalance_total),
    "failed-rebalance-total": _count(lambda life: life.failed_rebalance_total),
    "partitions unowned s": _seconds(lambda life: life.unowned_ms),
    "unowned s, worst partition": _seconds(lambda life: life.unowned_ms_max),
    "claimed by two (zombies) s": _seconds(lambda life: life.shared_ms),
    "moves": _count(lambda life: life.move_count),
    "moves, least possible": _count(lambda life: life.least_move_count),
    "given up and got back": _count(lambda life: life.return_count),
    "records read": _count(lambda life: life.read_count),
    "of these read again": _count(lambda life: life.duplicate_count),
    "lag max": _count(lambda life: life.lag_max),
}
"""The lines of the table: a name and how a life's value is shown."""
