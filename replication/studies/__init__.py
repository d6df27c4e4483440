"""Studies: a grid of settings times seeds, a row a run, a chart.

- parameters: The parameters of one run of a study.
- failures: Failures and restarts of a run, drawn from its parameters and seed.
- rows: A row of a study's table: the measures of one run.
- isr_run: One simulation of Kafka's replication, and its measures.
- quorum_voter: One replica of a majority quorum: votes, elections, appends, fetches.
- quorum_partition: The voters of one partition: elections, fetches and commits on machines that fail.
- quorum_run: A log on a majority quorum under the failures of a study, and its measures.
- study: A study, and the rows of its runs.
- shipped: The studies that come with the library.
- summary: A line for each cell of a study's grid, with an interval for each share.
- chart: A study as an SVG picture and as an HTML page.
"""

from __future__ import annotations

from replication.studies.parameters import Parameters
from replication.studies.rows import COLUMNS, Measures, Row
from replication.studies.shipped import STUDIES
from replication.studies.study import Run, Study, make_run, rows_of
from replication.studies.summary import Cell, Estimate, summarise

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
