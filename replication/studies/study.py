"""Run cells of parameters times seeds, a row for each run, and summarise the rows of each cell; the shipped studies.

An impossible cell, and an exception of a model or a policy, are rows with their reason. A share is the sum over a
cell's runs of what is counted by the sum of what it is counted of; other columns are means over runs.

>>> study = Study(name="tiny", title="Tiny", fixed={"minutes": 0.5}, cells=grid(acks=["all", "1"]), seeds=1)
>>> [(row["cell"], row["status"], row["lost_all"]) for row in rows_of(study, jobs=1)]
[(0, 'done', 0), (1, 'done', 0)]

Source: Cochran, Sampling Techniques, 3rd edition, section 2.11, for the interval of 95 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from broker.errors import BrokersideError, UsageError
from broker.workers import PROCESS_COST, Advance, in_order
from placement.placers.registry import load_path
from replication.rules.election import ElectionPolicy
from replication.studies.isr_run import run_isr
from replication.studies.parameters import NAMES, Measures, Parameters, checked
from replication.studies.quorum import run_quorum

Row: TypeAlias = dict[str, Any]
"""One run by COLUMNS."""
Cell: TypeAlias = dict[str, Any]
"""One cell: its values, the numbers of its runs by status, the first reason, {value, low, high} of each measure."""
RUNS_MAX: Final = 1_000_000
DONE, BROKEN, REFUSED, FAILED = STATUSES = ("done", "broken", "refused", "failed")
"""Whether a run was made, broke an invariant, has impossible parameters, or ended in an exception."""
_RUN_COST: Final = PROCESS_COST // 8
"""Some runs are worth a process of their own."""
COLUMNS: Final[Mapping[str, type]] = MappingProxyType(
    {"study": str, "cell": int, "seed": int}
    | {field.name: type(field.default) for field in attrs.fields(Parameters)}
    | {"status": str, "reason": str}
    | {field.name: type(field.default) for field in attrs.fields(Measures)}
)
"""The columns of a study's table, with the types of their values."""
_TIME: Final = ("partition_ms",)
SHARES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = MappingProxyType(
    {
        "lost_share": (("lost_all", "lost_one"), ("acked_all", "acked_one")),
        "unavailable_share": (("unavailable_ms",), _TIME),
        "leaderless_share": (("leaderless_ms",), _TIME),
        "unclean_share": (("unclean_elections",), ("clean_elections", "elr_elections", "unclean_elections")),
    }
)
"""The shares that a study can measure beside the columns: the columns counted, and those they are counted of."""


def grid(**values: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """Return all combinations of the values, the last parameter's changing fastest."""
    return tuple(dict(zip(values, each, strict=True)) for each in itertools.product(*values.values()))


@attrs.frozen(kw_only=True)
class Study:
    """Hold a study: `fixed` parameters, `cells` of those that differ, and the seeds from `first_seed` on.

    `about` reads the answer in a sentence or two; `measures` are the columns and shares that are summarised. Raises
    UsageError for names that are no parameters, values of other types, and too many runs.
    """

    name: str
    title: str
    about: str = ""
    fixed: Mapping[str, Any] = attrs.field(factory=dict)
    cells: tuple[Mapping[str, Any], ...] = ({},)
    seeds: int = 10
    first_seed: int = 0
    measures: tuple[str, ...] = ("lost_share", "unavailable_share")

    def __attrs_post_init__(self) -> None:
        for found in (self.fixed, *self.cells):
            for name, value in found.items():
                checked(name, value)
        for measure in self.measures:
            if measure not in SHARES and measure not in COLUMNS:
                known = ", ".join(SHARES)
                raise UsageError(f"study {self.name}: {measure!r} is no measure; known are {known} and the columns")
        if self.run_count > RUNS_MAX:
            raise UsageError(f"study {self.name} has {self.run_count:,} runs; allowed are {RUNS_MAX:,}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parameters in which cells differ."""
        return tuple(dict.fromkeys(itertools.chain(*self.cells)))

    @property
    def run_count(self) -> int:
        """Return the number of runs."""
        return len(self.cells) * self.seeds

    def row(self, number: int) -> Row:
        """Make a run by its number, cell by cell, and return its row."""
        cell, place = divmod(number, self.seeds)
        seed, given = self.first_seed + place, {**self.fixed, **self.cells[cell]}
        found, status, reason, measures = _run({name: checked(name, value) for name, value in given.items()}, seed)
        row = {"study": self.name, "cell": cell, "seed": seed, **{name: found.get(name) for name in NAMES}}
        return row | {"status": status, "reason": reason} | attrs.asdict(measures)


def _run(found: dict[str, Any], seed: int) -> tuple[dict[str, Any], str, str, Measures]:
    """Make one run; return its parameters, as given if they are impossible, its status, reason and measures."""
    try:
        parameters = Parameters(**found)
        policy = _policy(parameters.election)
        if parameters.replication == "quorum" and policy is not None:
            raise UsageError("an election policy of one's own has no part in a quorum, which votes")
    except BrokersideError as error:
        return found, REFUSED, str(error), Measures()
    found = attrs.asdict(parameters)
    try:
        is_quorum = parameters.replication == "quorum"
        measures, broken = run_quorum(parameters, seed) if is_quorum else run_isr(parameters, seed, policy)
    except (Exception, SystemExit) as error:  # Whatever a model or a policy raises ends its own run.
        return found, FAILED, f"{type(error).__name__}: {' '.join(str(error).split())}", Measures()
    return found, BROKEN if broken else DONE, broken, measures


def _policy(name: str) -> ElectionPolicy | None:
    """Return the policy "module:function", None for Kafka's own; raise UsageError where there is none."""
    if name == "kafka":
        return None
    found: Any = load_path("election", name) if ":" in name else None
    if not callable(found):
        raise UsageError(f"election {name!r} is no policy; wanted is kafka, or module:function")
    policy: ElectionPolicy = found
    return policy


def rows_of(study: Study, *, jobs: int | None = None, advance: Advance = lambda _: None) -> Iterator[Row]:
    """Yield the rows of a study in the order of its runs, equal from any number of processes.

    `jobs` is the number of processes, one a core if None; `advance` is called with 1 for each row.
    """
    runs = list(range(study.run_count))
    for row in in_order(partial(_work, study), runs, cost=lambda _: _RUN_COST, jobs=jobs):
        yield row
        advance(1)


def _work(study: Study, number: int, _advance: Advance) -> Row:
    return study.row(number)


def summarise(study: Study, rows: Iterable[Row]) -> list[Cell]:
    """Return the cells of a study in their order."""
    by_cell: list[list[Row]] = [[] for _ in study.cells]
    for row in rows:
        by_cell[row["cell"]].append(row)
    return [
        {
            **values,
            **{f"{status}_count": sum(row["status"] == status for row in found) for status in STATUSES},
            "reason": next((row["reason"] for row in found if row["status"] != DONE), ""),
            **{
                name: _estimate(name, [row for row in found if row["status"] in (DONE, BROKEN)])
                for name in study.measures
            },
        }
        for values, found in zip(study.cells, by_cell, strict=True)
    ]


def _estimate(name: str, rows: Sequence[Row]) -> dict[str, float | None]:
    """Return a measure of the runs that came to their end: a share, or the mean of a column."""
    parts, wholes = SHARES.get(name, ((name,), ()))
    return ratio(
        [sum(row[each] for each in parts) for row in rows],
        [sum(row[each] for each in wholes) if wholes else 1 for row in rows],
    )


def ratio(parts: Sequence[float], wholes: Sequence[float]) -> dict[str, float | None]:
    """Return the sum of the parts by the sum of the wholes, with the bounds of its interval of 95 %.

    All are None where nothing was counted; one run has no interval.
    """
    count, whole = len(parts), sum(wholes)
    if not whole:
        return {"value": None, "low": None, "high": None}
    value = sum(parts) / whole
    if count < 2:
        return {"value": value, "low": None, "high": None}
    squares = sum((part - value * of) ** 2 for part, of in zip(parts, wholes, strict=True))
    error = 1.96 * (math.sqrt(squares / (count - 1) * count) / whole)
    return {"value": value, "low": max(0.0, value - error), "high": value + error}


_FAILING: Final = {"mttf_minutes": 3, "repair_seconds": 30, "minutes": 10}
"""Machines fail hundreds of times as often as real ones, so that ten minutes show it."""
QUORUM: Final = Study(
    name="quorum",
    title="ISR against a majority quorum",
    about="To survive f failures an ISR with min.insync.replicas 1 needs f + 1 replicas, a quorum 2f + 1. A write "
    "waits for all members of the ISR, which a dead one leaves only when its session has ended; of a quorum it waits "
    "for the faster half. A quorum's voter flushes before it answers, a broker does not.",
    seeds=20,
    fixed=_FAILING,
    cells=tuple(
        {**case, "failure": failure}
        for case in (
            {"replication": "isr", "factor": 2, "min_isr": 1},
            {"replication": "quorum", "factor": 3},
            {"replication": "isr", "factor": 3, "min_isr": 1},
            {"replication": "isr", "factor": 3, "min_isr": 2},
            {"replication": "quorum", "factor": 5},
        )
        for failure in ("crash", "power")
    ),
    measures=("unavailable_share", "lost_share", "latency_p50_ms", "factor"),
)
RESTARTS: Final = Study(
    name="restarts",
    title="Controlled against uncontrolled restarts",
    about="One broker after the other is restarted. In a controlled shutdown it hands its leaders over first and "
    "leaves every ISR at once; killed, it stays leader and in the ISR until its session ends.",
    seeds=20,
    fixed={"brokers": 3, "minutes": 10, "restart_seconds": 60},
    cells=grid(
        restarts=["controlled", "uncontrolled"], restart_down_seconds=[5, 20], min_isr=[2, 3], acks=["all", "1"]
    ),
    measures=("unavailable_share", "latency_p99_ms", "lost_share"),
)
SETTINGS: Final = Study(
    name="settings",
    title="Loss and unavailability by settings",
    about="Machines lose power on their own and come back without the end of their logs that was not flushed. What is "
    "acknowledged in the page cache of too few replicas is lost; what waits for more of them is unavailable longer.",
    fixed={"brokers": 3, "failure": "power", **_FAILING},
    cells=grid(acks=["all", "1"], factor=[2, 3], min_isr=[1, 2], unclean=[False, True], elr=[True, False]),
)
STUDIES: Final[Mapping[str, Study]] = {each.name: each for each in (QUORUM, RESTARTS, SETTINGS)}
"""The shipped studies by name."""
