"""A study: a grid of parameters times seeds, and the rows of its runs.

Constraints: a combination of the grid that is impossible, and an exception of a model or a policy, are rows with their
reason, so that as many rows come out as runs go in. A row depends on its parameters and seed alone; rows do not depend
on the number of processes, and come in the order of the runs. A study has at most RUNS_MAX runs.

Example:

>>> study = Study(name="tiny", title="Tiny", fixed={"minutes": 0.5}, grid={"acks": ["all", "1"]}, seeds=1)
>>> [(row.cell, row.status, row.measures.lost_all) for row in rows_of(study, jobs=1)]
[(0, 'done', 0), (1, 'done', 0)]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

import attrs

from broker.errors import BrokersideError, UsageError
from broker.workers import PROCESS_COST, in_order
from replication.rules.election import ElectionPolicy
from replication.studies.isr_run import run_isr
from replication.studies.parameters import Parameters, check_names, checked
from replication.studies.quorum_run import run_quorum
from replication.studies.rows import BROKEN, COLUMNS, DONE, FAILED, REFUSED, Row

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
