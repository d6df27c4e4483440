"""Run a grid of parameters times seeds, a row for each run, and summarise the rows of each combination.

Constraints: a combination of the grid that is impossible, and an exception of a model or a policy, are rows with their
reason, so that as many rows come out as runs go in. A row depends on its parameters and seed alone; rows do not depend
on the number of processes, and come in the order of the runs. A share is the sum over a cell's runs of what is counted
by the sum of what it is counted of; other columns are means over runs. The interval of 95 % comes from how runs differ.

Example:

>>> study = Study(name="tiny", title="Tiny", fixed={"minutes": 0.5}, grid={"acks": ["all", "1"]}, seeds=1)
>>> [(row.cell, row.status, row.measures.lost_all) for row in rows_of(study, jobs=1)]
[(0, 'done', 0), (1, 'done', 0)]

Source: Cochran, Sampling Techniques, 3rd edition, section 2.11, for the interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import attrs

from broker.errors import BrokersideError, UsageError
from broker.workers import PROCESS_COST, in_order
from replication.rules.election import ElectionPolicy
from replication.studies.isr_run import run_isr
from replication.studies.parameters import Parameters, check_names, checked
from replication.studies.quorum_run import run_quorum
from replication.studies.rows import BROKEN, COLUMNS, DONE, FAILED, REFUSED, Measures, Row

RUNS_MAX: Final = 1_000_000
SEEDS: Final = 10
MEASURES: Final = ("lost_share", "unavailable_share", "leaderless_share", "unclean_share")
"""What a chart can show beside the columns of the table: shares of acknowledged writes, of time, and of elections."""
_RUN_COST: Final = PROCESS_COST // 8
"""Some runs are worth a process of their own."""
Policies = Mapping[str, ElectionPolicy]


@attrs.frozen
class Run:
    """Hold one run: its study's name, the cell of the grid, the seed, and the parameters as given."""

    study: str
    cell: int
    seed: int
    parameters: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Study:
    """Hold a study: `fixed` parameters, `cases` of several at once, a `grid` of values, and the seeds `first_seed` on.

    Each case is combined with each value of the grid. `measures` are the columns and shares that its charts show.
    Raises UsageError for names that are no parameters, an empty grid value, and too many runs.
    """

    name: str
    title: str
    about: str = ""
    fixed: Mapping[str, Any] = attrs.field(factory=dict)
    cases: Sequence[Mapping[str, Any]] = ({},)
    grid: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)
    seeds: int = SEEDS
    first_seed: int = 0
    measures: tuple[str, ...] = ("lost_share", "unavailable_share")

    def __attrs_post_init__(self) -> None:
        where = f"study {self.name}"
        said = [*self.fixed, *dict.fromkeys(name for case in self.cases for name in case), *self.grid]
        for name in said:
            if said.count(name) > 1:
                raise UsageError(f"{where}: {name!r} is said in more than one of fixed, cases and grid")
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise UsageError(f"{where}: {name!r} of the grid is {values!r}; wanted is a list of values")
        for part, found in (("fixed", self.fixed), ("grid", self.grid), *(("cases", case) for case in self.cases)):
            check_names(found, f"{where}, {part}")
            for name, value in found.items():
                for each in value if part == "grid" else (value,):
                    checked(name, each)
        for measure in self.measures:
            if measure not in (*MEASURES, *COLUMNS):
                raise UsageError(
                    f"{where}: {measure!r} cannot be drawn; known are {', '.join(MEASURES)} and the columns"
                )
        if self.run_count > RUNS_MAX:
            raise UsageError(f"{where} has {self.run_count:,} runs; allowed are {RUNS_MAX:,}")

    @property
    def cell_count(self) -> int:
        """Return the number of combinations of the grid."""
        return len(self.cases) * math.prod(len(values) for values in self.grid.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parameters in which cells differ, those of cases first."""
        return (*dict.fromkeys(name for case in self.cases for name in case), *self.grid)

    @property
    def run_count(self) -> int:
        """Return the number of runs."""
        return self.cell_count * self.seeds

    def cells(self) -> Iterator[Mapping[str, Any]]:
        """Yield the combinations of cases and grid, the last parameter's values changing fastest."""
        for case, *values in itertools.product(self.cases, *self.grid.values()):
            yield {**case, **dict(zip(self.grid, values, strict=True))}

    def runs(self) -> Iterator[Run]:
        """Yield the runs, cell by cell."""
        for cell, values in enumerate(self.cells()):
            for seed in range(self.first_seed, self.first_seed + self.seeds):
                yield Run(self.name, cell, seed, {**self.fixed, **values})


def make_run(run: Run, policies: Policies | None = None) -> Row:
    """Make one run and return its row."""
    row = Row(study=run.study, cell=run.cell, seed=run.seed, parameters=dict(run.parameters), status=DONE)
    try:
        parameters = Parameters(**run.parameters)
        policy = policy_named(parameters.election, policies or {})
        if parameters.replication == "quorum" and policy is not None:
            raise UsageError("an election policy of one's own has no part in a quorum, which votes")
    except BrokersideError as error:
        return attrs.evolve(row, status=REFUSED, reason=str(error))
    row = attrs.evolve(row, parameters=attrs.asdict(parameters))
    try:
        if parameters.replication == "quorum":
            measures, broken = run_quorum(parameters, run.seed)
        else:
            measures, broken = run_isr(parameters, run.seed, policy)
    except (Exception, SystemExit) as error:  # Whatever a model or a policy raises ends its own run.
        return attrs.evolve(row, status=FAILED, reason=f"{type(error).__name__}: {' '.join(str(error).split())}")
    return attrs.evolve(row, status=BROKEN if broken else DONE, reason=broken, measures=measures)


def rows_of(
    study: Study,
    *,
    jobs: int | None = None,
    policies: Policies | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield the rows of a study in the order of its runs.

    `jobs` is the number of processes, one a core if None; `advance` is called with 1 for each row. `policies` are
    functions that other processes can import.
    """
    for row in in_order(partial(_work, policies), list(study.runs()), cost=lambda run: _RUN_COST, jobs=jobs):
        yield row
        advance(1)


def _work(policies: Policies | None, run: Run, _advance: Callable[[int], None]) -> Row:
    return make_run(run, policies)


def policy_named(name: str, policies: Policies) -> ElectionPolicy | None:
    """Return one of `policies` or "module:function", None for Kafka's own; raise UsageError where there is none."""
    if name == "kafka":
        return None
    if name in policies:
        return policies[name]
    module, _, function = name.partition(":")
    try:
        found: ElectionPolicy | None = getattr(import_module(module), function, None) if function else None
    except ImportError as error:
        raise UsageError(f"election {name!r}: {error}") from None
    if not callable(found):
        raise UsageError(f"election {name!r} is no policy; wanted is kafka, or module:function")
    return found


Z_95: Final = 1.96
_Part = Callable[[Measures], float]
_SHARES: Final[Mapping[str, tuple[_Part, _Part]]] = MappingProxyType(
    {
        "lost_share": (lambda m: m.lost_all + m.lost_one, lambda m: m.acked_all + m.acked_one),
        "unavailable_share": (lambda m: m.unavailable_ms, lambda m: m.partition_ms),
        "leaderless_share": (lambda m: m.leaderless_ms, lambda m: m.partition_ms),
        "unclean_share": (
            lambda m: m.unclean_elections,
            lambda m: m.clean_elections + m.elr_elections + m.unclean_elections,
        ),
    }
)


@attrs.frozen
class Estimate:
    """Hold a value with the bounds of its interval of 95 %; all are NaN where nothing was counted."""

    value: float
    low: float
    high: float


@attrs.frozen(kw_only=True)
class Cell:
    """Hold one combination of the grid: its values, the numbers of its runs by status, an estimate for each measure."""

    number: int
    values: Mapping[str, object]
    done_count: int
    broken_count: int
    refused_count: int
    failed_count: int
    estimates: Mapping[str, Estimate]
    reason: str = ""
    """Why the first run that was not done was not."""

    @property
    def label(self) -> str:
        """Return the values in words: acks all, min_isr 2."""
        return ", ".join(f"{name} {value_of(value)}" for name, value in self.values.items()) or "all runs"


def summarise(study: Study, rows: Iterable[Row]) -> list[Cell]:
    """Return the cells of a study in the order of its grid."""
    by_cell: dict[int, list[Row]] = {number: [] for number in range(study.cell_count)}
    for row in rows:
        by_cell[row.cell].append(row)
    return [_cell(study, number, values, by_cell[number]) for number, values in enumerate(study.cells())]


def _cell(study: Study, number: int, values: Mapping[str, object], rows: Sequence[Row]) -> Cell:
    counts = {status: sum(row.status == status for row in rows) for status in (DONE, BROKEN, REFUSED, FAILED)}
    counted = [row for row in rows if row.is_counted]
    return Cell(
        number=number,
        values=values,
        done_count=counts[DONE],
        broken_count=counts[BROKEN],
        refused_count=counts[REFUSED],
        failed_count=counts[FAILED],
        estimates={name: estimate(name, counted) for name in study.measures},
        reason=next((row.reason for row in rows if row.status != DONE), ""),
    )


def estimate(name: str, rows: Sequence[Row]) -> Estimate:
    """Return a measure of some runs: a share, or the mean of a column."""
    if name in _SHARES:
        part, whole = _SHARES[name]
        return ratio([part(row.measures) for row in rows], [whole(row.measures) for row in rows])
    return ratio([float(str(row.cells()[name])) for row in rows], [1.0] * len(rows))


def ratio(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """Return the sum of the parts by the sum of the wholes, with its interval."""
    count, whole = len(parts), sum(wholes)
    if not whole:
        return Estimate(math.nan, math.nan, math.nan)
    value = sum(parts) / whole
    if count < 2:
        return Estimate(value, math.nan, math.nan)
    squares = sum((part - value * of) ** 2 for part, of in zip(parts, wholes, strict=True))
    error = math.sqrt(squares / (count - 1) * count) / whole
    return Estimate(value, max(0.0, value - Z_95 * error), value + Z_95 * error)


def value_of(value: object) -> str:
    """Return a parameter's value in words: on and off for true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
