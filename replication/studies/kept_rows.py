"""Keep the rows of a study as lines of JSON while it runs, so that a stopped one goes on.

What it decides: the first line says which study it is; each further line is a row. A line that was cut off by the end
of its process is left out. A file of another study is refused.

Constraints: rows are numbers and text; what is read back is equal to what was written.

Source: ours; JSON Lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import attrs

from broker.errors import InputError
from replication.studies.parameters import NAMES
from replication.studies.rows import Measures, Row
from replication.studies.study import Study

_MEASURES: Final = tuple(field.name for field in attrs.fields(Measures))


def head_line(study: Study) -> str:
    """Return the line that says which study a file is of: everything that its rows depend on."""
    known = {
        "study": study.name,
        "fixed": dict(study.fixed),
        "cases": [dict(case) for case in study.cases],
        "grid": {name: list(values) for name, values in study.grid.items()},
    }
    return json.dumps(known)


def row_line(row: Row) -> str:
    """Return a row as a line."""
    return json.dumps(row.cells())


def rows_in(study: Study, lines: Iterable[str], source: str) -> dict[tuple[int, int], Row]:
    """Return the rows of a file by cell and seed; raise InputError if it is of another study."""
    found: dict[tuple[int, int], Row] = {}
    for place, line in enumerate(lines):
        if place == 0:
            if line.strip() != head_line(study):
                raise InputError(
                    f"holds the rows of another study than {study.name}; name another folder", source=source
                )
            continue
        try:
            row = _row(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue  # The process that wrote it was ended in the middle.
        found[row.cell, row.seed] = row
    return found


def _row(cells: dict[str, Any]) -> Row:
    return Row(
        study=cells["study"],
        cell=cells["cell"],
        seed=cells["seed"],
        parameters={name: cells[name] for name in NAMES if cells[name] is not None},
        status=cells["status"],
        reason=cells["reason"],
        measures=Measures(**{name: cells[name] for name in _MEASURES}),
    )
