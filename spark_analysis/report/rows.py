"""Hold the rows of the tables that the report shows: an attribute for each column of `tables/schemas.txt`.

None means that the input does not say; a column of lists holds tuples. No value holds markup or a time of day.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import attrs

from broker.cluster import BROKER_FLAGS
from placement.balance import constraints
from placement.balance.measures import Distribution
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Table

_LISTS: Final = ("ints", "strings")


class Row:
    """One row of a table, whose columns are its attributes."""

    __attrs_attrs__: ClassVar[Any]

    if TYPE_CHECKING:

        def __init__(self, *values: Any, **columns: Any) -> None: ...
        def __getattr__(self, column: str) -> Any: ...


Kind = TypeVar("Kind", bound=Row)


def _of(table: Table) -> Callable[[type[Kind]], type[Kind]]:
    """Return a decorator that gives a class the columns of a table, in their order."""
    columns: dict[str, Any] = {
        column.name: attrs.field(default=() if column.type in _LISTS and not column.nullable else None)
        for column in table.columns
    }
    return attrs.frozen(these=columns)


@_of(schemas.CLUSTERS)
class ClusterFacts(Row):
    """Hold one row of the table of clusters."""


@attrs.frozen(kw_only=True)
class Spread(Distribution):
    """Hold one row of the table of measures: how one quantity is spread over brokers, racks or topics."""

    cluster_id: int
    placer: str
    scope: str
    quantity: str


@_of(schemas.BROKERS)
class BrokerLoad(Row):
    """Hold one row of the table of brokers."""

    @property
    def states(self) -> tuple[str, ...]:
        """Return what sets the broker apart from others, in words."""
        return tuple(name.replace("_", " ") for name in BROKER_FLAGS if getattr(self, name))


@_of(schemas.RACKS)
class RackLoad(Row):
    """Hold one row of the table of racks; `rack` is None for the brokers without a rack."""


@_of(schemas.LOG_DIRS)
class LogDir(Row):
    """Hold one row of the table of log directories."""


@_of(schemas.TOPICS)
class TopicSpread(Row):
    """Hold one row of the table of topics."""


@attrs.frozen(kw_only=True)
class Violation(constraints.Violation):
    """Hold one row of the table of violations: one subject that breaks a constraint, of one cluster."""

    cluster_id: int
    placer: str


@_of(schemas.REJECTS)
class Reject(Row):
    """Hold one row of the table of rejects."""


@_of(schemas.INPUTS)
class InputCount(Row):
    """Hold one row of the table of inputs."""


@_of(schemas.CHANGES)
class PartitionChange(Row):
    """Hold one row of the table of changes."""


@_of(schemas.PLANS)
class LeastPlan(Row):
    """Hold one row of the table of plans; `refused` says why there is none."""


@_of(schemas.OUTAGES)
class WorstOutage(Row):
    """Hold one row of the table of outages: the loss of the worst broker, or of the worst rack."""


@_of(schemas.RECOVERY)
class RecoveryStep(Row):
    """Hold one row of the table of recovery."""


@_of(schemas.RESTARTS)
class RestartBatches(Row):
    """Hold one row of the table of restarts; `refused` says why there is no schedule."""


def row_json(row: Any, without: tuple[str, ...] = ("cluster_id", "placer")) -> dict[str, Any]:
    """Return the columns of one row by name; a number that is not finite is null."""
    found = attrs.asdict(row).items()
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in found
        if name not in without
    }
