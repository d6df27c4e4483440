"""Define a study: a grid of parameters times seeds, and read one from TOML.

What it decides: which runs a study has, in which order, and what a study file may say.

Constraints: a file with an unknown key or a value that no parameter has is refused with one sentence; a combination of
the grid that is impossible is a run whose row says why. A study has at most RUNS_MAX runs.

Example:

>>> study = parse_study('''
... title = "Acknowledgements"
... seeds = 2
... [fixed]
... mttf_minutes = 2
... [grid]
... acks = ["all", "1"]
... ''', "acks")
>>> [(run.cell, run.seed, run.parameters["acks"]) for run in study.runs()]
[(0, 0, 'all'), (0, 1, 'all'), (1, 0, '1'), (1, 1, '1')]

Source: ours; TOML 1.0.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from broker.errors import InputError, UsageError
from replication.studies.parameters import NAMES, check_names, checked
from replication.studies.rows import COLUMNS

RUNS_MAX: Final = 1_000_000
SEEDS: Final = 10
_KEYS: Final = ("title", "about", "seeds", "first_seed", "fixed", "cases", "grid", "chart")
_CHART_KEYS: Final = ("measures",)
MEASURES: Final = ("lost_share", "unavailable_share", "leaderless_share", "unclean_share")
"""What a chart can show beside the columns of the table: shares of acknowledged writes, of time, and of elections."""


@attrs.frozen
class Run:
    """Hold one run: its study's name, the cell of the grid, the seed, and the parameters as given."""

    study: str
    cell: int
    seed: int
    parameters: Mapping[str, Any]

    @property
    def key(self) -> tuple[int, int]:
        """Return what tells the run from the study's others."""
        return self.cell, self.seed


@attrs.frozen(kw_only=True)
class Study:
    """Hold a study: `fixed` parameters, `cases` of several at once, a `grid` of values, and the seeds `first_seed` on.

    Each case is combined with each value of the grid.

    `measures` are the columns and shares that its charts show. Raises UsageError for names that are no parameters, an
    empty grid value, and too many runs.
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
        self._check_parameters()
        for what, number, least in (("seeds", self.seeds, 1), ("first_seed", self.first_seed, 0)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise UsageError(f"study {self.name}: {what} is {number!r}; wanted is a whole number from {least} on")
        for measure in self.measures:
            if measure not in (*MEASURES, *COLUMNS):
                known = f"known are {', '.join(MEASURES)} and the columns"
                raise UsageError(f"study {self.name}: {measure!r} cannot be drawn; {known}")
        if self.run_count > RUNS_MAX:
            raise UsageError(f"study {self.name} has {self.run_count:,} runs; allowed are {RUNS_MAX:,}")

    def _check_parameters(self) -> None:
        """Raise UsageError for a name that is no parameter or is said twice, and for a value of another type."""
        where = f"study {self.name}"
        if not self.cases:
            raise UsageError(f"{where}: cases is empty; leave it out, or give one")
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise UsageError(f"{where}: {name!r} of the grid is {values!r}; wanted is a list of values")
        for part, found in (("fixed", self.fixed), ("grid", self.grid), *(("cases", case) for case in self.cases)):
            check_names(found, f"{where}, {part}")
        said = [*self.fixed, *dict.fromkeys(name for case in self.cases for name in case), *self.grid]
        for name in said:
            if said.count(name) > 1:
                raise UsageError(f"{where}: {name!r} is said in more than one of fixed, cases and grid")
        for found in (self.fixed, *self.cases):
            for name, value in found.items():
                checked(name, value)
        for name, values in self.grid.items():
            for value in values:
                checked(name, value)

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

    def run_at(self, place: int) -> Run:
        """Return the run at a place of `runs()`, from 0 on, without making those before it."""
        cell, seed = divmod(place, self.seeds)
        values: dict[str, Any] = {}
        left = cell
        for name in reversed(tuple(self.grid)):
            left, chosen = divmod(left, len(self.grid[name]))
            values[name] = self.grid[name][chosen]
        return Run(self.name, cell, self.first_seed + seed, {**self.fixed, **self.cases[left], **values})


def parse_study(text: str, name: str) -> Study:
    """Return the study of a TOML text; raise InputError where it is no TOML, UsageError where it is no study."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"study {name}: {error}") from None
    except ValueError:  # Python reads numbers of up to 4,300 digits.
        raise InputError(f"study {name}: a number has thousands of digits") from None
    for key in found:
        if key not in _KEYS:
            known = f"known are {', '.join(_KEYS)}"
            where = f"; {key!r} is a parameter: it belongs into [fixed] or [grid]" if key in NAMES else f"; {known}"
            raise UsageError(f"study {name}: {key!r} is no key of a study{where}")
    for key in ("fixed", "grid", "chart"):
        if not isinstance(found.get(key, {}), dict):
            raise UsageError(f"study {name}: {key!r} is {found[key]!r}; wanted is a table, [{key}]")
    cases = found.get("cases", [{}])
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise UsageError(f"study {name}: cases is {cases!r}; wanted are tables, [[cases]]")
    chart = found.get("chart", {})
    for key in chart:
        if key not in _CHART_KEYS:
            raise UsageError(f"study {name}, chart: {key!r} is no key; known are {', '.join(_CHART_KEYS)}")
    defaults = attrs.fields_dict(Study)
    return Study(
        name=name,
        title=str(found.get("title", name)),
        about=" ".join(str(found.get("about", "")).split()),
        fixed=found.get("fixed", {}),
        cases=cases,
        grid=found.get("grid", {}),
        seeds=found.get("seeds", SEEDS),
        first_seed=found.get("first_seed", 0),
        measures=tuple(chart.get("measures", defaults["measures"].default)),
    )
