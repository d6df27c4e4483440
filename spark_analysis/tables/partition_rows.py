"""Turn the partitions of one cluster into rows of the table of partitions, a batch at a time.

Each partition has a row, whatever is wrong with it, with every constraint and state that it breaks; the table of
violations explains the first of each kind. What the input does not say is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int64Array
from placement.balance.audit import PartitionStates, least_isr
from placement.balance.constraints import RACK_SPREAD, Violations
from placement.balance.loads import LEADER_NOT_SAID
from placement.balance.out_of_sync import missing_replicas
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import Rows
from spark_analysis.tables.columns import Part, Table
from spark_analysis.tables.lists import id_lists, list_offsets, repeated
from spark_analysis.tables.view_columns import partition_columns

_NAMES: Final = schemas.PARTITIONS.column_names[2:]
_LEADER_STATES: Final = ("leaderless", "not_preferred_leader")
_MIN_ISR_STATES: Final = ("under_min_isr", "at_min_isr")


@attrs.frozen(eq=False)
class Found:
    """Hold the partitions of a cluster in each state, and those that break each constraint.

    `racks_known` tells whether the rack rule could be judged.
    """

    states: PartitionStates
    broken: tuple[Violations, ...]
    racks_known: bool

    def marks(self, count: int) -> dict[str, NDArray[np.bool_]]:
        """Return which of `count` partitions break each constraint or state that some partition breaks, by name."""
        rows = {found.constraint.name: found.subjects for found in self.broken}
        known = attrs.asdict(self.states, recurse=False)
        rows |= {name.replace("_", "-"): of_state for name, of_state in known.items() if of_state is not None}
        return {name: _mask(found, count) for name, found in rows.items() if found.size}


def partition_rows(view: ClusterView, found: Found, min_insync_replicas: int | None) -> Iterator[tuple[Table, Rows]]:
    """Yield the rows of all partitions of `view`, in its order, in batches.

    `min_insync_replicas` is for topics that do not show their own.
    """
    table, start = view.partitions, 0
    missing = None if table.isr is None else missing_replicas(view)
    states, marks = _states(view, found, least_isr(view, min_insync_replicas)), found.marks(table.count)
    for rows in partition_columns(view, min_insync_replicas):
        run = slice(start, start + rows.count)
        start = run.stop
        columns: dict[str, Part] = {
            "cluster": repeated(view.name, rows.count),
            **rows.values,
            "missing_from_isr": id_lists(None if missing is None else missing[run]),
            **{name: None if mask is None else pa.array(mask[run], mask=~known[run]) for name, (mask, known) in states},
            "broken": _names_of({name: mask[run] for name, mask in marks.items()}, rows.count),
        }
        yield schemas.PARTITIONS, Rows([rows.count], tuple(columns[name] for name in _NAMES))


def _states(
    view: ClusterView, found: Found, least: Int64Array | None
) -> list[tuple[str, tuple[NDArray[np.bool_] | None, NDArray[np.bool_]]]]:
    """Return for each state, by its column, whether each partition is in it, and where that is known."""
    table = view.partitions
    whole = np.ones(table.count, dtype=np.bool_)
    known = dict.fromkeys(_LEADER_STATES, whole if table.leader is None else table.leader != LEADER_NOT_SAID)
    known |= dict.fromkeys(_MIN_ISR_STATES, whole if least is None else least >= 0)
    states: list[tuple[str, tuple[NDArray[np.bool_] | None, NDArray[np.bool_]]]] = []
    for field in attrs.fields(PartitionStates):
        rows = getattr(found.states, field.name)
        states.append((field.name, (None if rows is None else _mask(rows, table.count), known.get(field.name, whole))))
    crowded = next(
        (one.subjects for one in found.broken if one.constraint.name == RACK_SPREAD.name), np.empty(0, np.int64)
    )
    return [*states, ("fewer_racks", (_mask(crowded, table.count) if found.racks_known else None, whole))]


def _mask(rows: Int64Array, count: int) -> NDArray[np.bool_]:
    mask = np.zeros(count, dtype=np.bool_)
    mask[rows] = True
    return mask


def _names_of(marks: dict[str, NDArray[np.bool_]], count: int) -> Part:
    """Return for each row the names of the marks that it has."""
    held = np.column_stack([*marks.values()]) if marks else np.zeros((count, 0), dtype=np.bool_)
    names: Any = pa.array(list(marks), type=pa.string())
    return pa.ListArray.from_arrays(list_offsets(held), names.take(pa.array(np.nonzero(held)[1])))
