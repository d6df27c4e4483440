"""Studies: a grid of settings times seeds, a row a run, a chart.

- parameters: The parameters of one run of a study.
- rows: A row of a study's table: the measures of one run.
- isr_run: One simulation of Kafka's replication under failures drawn from the seed, and its measures.
- quorum: A partition on a majority quorum: votes, elections and fetches on failing machines.
- quorum_run: A log on a majority quorum under the failures of a study, and its measures.
- study: A study, the rows of its runs, and a line for each cell of its grid.
- shipped: The studies that come with the library.
- chart: A study as an SVG picture and as an HTML page.
"""

from __future__ import annotations

from replication.studies.parameters import Parameters
from replication.studies.rows import COLUMNS, Measures, Row
from replication.studies.shipped import STUDIES
from replication.studies.study import Cell, Estimate, Run, Study, make_run, rows_of, summarise

__all__ = (
    "COLUMNS",
    "STUDIES",
    "Cell",
    "Estimate",
    "Measures",
    "Parameters",
    "Row",
    "Run",
    "Study",
    "make_run",
    "rows_of",
    "summarise",
)
