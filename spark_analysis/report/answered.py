"""Read the answers to the questions of `--ask` from the tables of a run.

What it decides: a question sees the rows of all clusters at once, in order of cluster and placer, with the names of the
clusters and their shapes beside them; a few columns a cluster.

Example: load_answers(out, asked)[0].shown.lead

Left out: how answers are shown (answers.py).

Source: questions/.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from spark_analysis.questions.question import Shown
from spark_analysis.questions.registry import Asked
from spark_analysis.tables import schemas
from spark_analysis.tables.write import read_table

_KEY: Final = ("cluster_id", "placer")
_NAMES: Final = ("cluster", "shape")


@attrs.frozen
class Answered:
    """Hold a question that was asked and what is shown of the answers; `faults` are clusters without an answer."""

    asked: Asked
    shown: Shown
    fault_count: int
    first_fault: str | None

    @property
    def name(self) -> str:
        """Return the name of the question, which is that of its section."""
        return self.asked.name

    @property
    def title(self) -> str:
        """Return the heading of the question's section."""
        return self.asked.question.title


def load_answers(out: Path, asked: Sequence[Asked]) -> tuple[Answered, ...]:
    """Return what is shown of each question, from its table under `out`; raise InputError for one that is missing."""
    if not asked:
        return ()
    names = read_table(out, schemas.CLUSTERS, columns=[*_KEY, *_NAMES])
    return tuple(_answered(one, read_table(out, one.question.run_table), names) for one in asked)


def _answered(asked: Asked, rows: pa.Table, names: pa.Table) -> Answered:
    named = _with_names(rows, names)
    faults = named.filter(pc.is_valid(named["fault"]))["fault"]
    return Answered(asked, asked.question.show(named, asked.values), len(faults), pc.min(faults).as_py())


def _with_names(rows: pa.Table, names: pa.Table) -> pa.Table:
    """Return the rows with the names of their clusters, in order of cluster and placer and else in their own."""
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    order: Any = [*((name, "ascending") for name in _KEY), ("row", "ascending")]
    return numbered.join(names, list(_KEY)).sort_by(order).drop_columns(["row"])
