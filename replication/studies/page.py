"""Write a study as an HTML page: what it asks, the chart, the table of its cells, its parameters.

Constraints: one file that opens offline; every text is escaped; the same rows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.drawing.element import Markup, tag
from broker.drawing.page import offline_page, table
from replication.studies.chart import measure_title, to_svg, value_text
from replication.studies.study import Study
from replication.studies.summary import Cell, value_of


def to_html(study: Study, cells: Sequence[Cell], command: str) -> str:
    """Return the page of a study; `command` is what repeats it."""
    heads = [*study.names, *(measure_title(name) for name in study.measures), "runs", "broken", "refused", "failed"]
    rows = [
        [
            *(value_of(cell.values.get(name, "")) for name in study.names),
            *(value_text(name, cell.estimates[name].value) for name in study.measures),
            f"{cell.done_count:,}",
            f"{cell.broken_count:,}",
            f"{cell.refused_count:,}",
            f"{cell.failed_count:,}",
        ]
        for cell in cells
    ]
    texts = tuple(range(len(study.names)))
    reasons = dict.fromkeys(cell.reason for cell in cells if cell.reason)
    return offline_page(
        study.title,
        tag("h1", study.title),
        tag("p", study.about) if study.about else None,
        tag("p", "Again: ", tag("code", command), class_="quiet"),
        tag("figure", Markup(to_svg(study, cells))),
        tag("h2", "Cells"),
        *table(heads, rows, texts=texts),
        *(tag("p", "Not as it should be: ", reason, class_="alert") for reason in reasons),
        tag("h2", "What is the same in all runs"),
        *table(("parameter", "value"), [(name, value_of(value)) for name, value in study.fixed.items()], texts=(0, 1)),
    )
