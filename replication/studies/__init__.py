"""Run studies: a grid of settings times seeds, a row a run, a chart.

    parameters        Hold the parameters of one run of a study, and refuse those that cannot be.
    failures          Draw the failures and restarts of a run from its parameters and its seed.
    rows              Hold what came of one run of a study: a row of its table.
    isr_run           Run one simulation of Kafka's own replication for a study, and count.
    quorum_voter      Decide what one replica of a majority quorum does: it votes, is elected, appends, fetches.
    quorum_machines   Run the machines of a quorum: a clock, messages with delays, processes that die and start.
    quorum_partition  Let the voters of one partition elect a leader, fetch from it and commit.
    quorum_producer   Write to the leaders of quorums as the simulation's producers write to Kafka's leaders.
    quorum_run        Run a log on a majority quorum under the failures of a study, and count the same.
    study             Define a study: a grid of parameters times seeds, and read one from TOML.
    running           Make the runs of a study, side by side, and go on where a former command stopped.
    kept_rows         Keep the rows of a study as lines of JSON while it runs, so that a stopped one goes on.
    summary           Summarise a study: a line for each cell of its grid, with an interval for each share.
    chart             Draw a study: a row for each cell of its grid, a column for each measure.
    page              Write a study as an HTML page: what it asks, the chart, the table of its cells.
    catalogue/        List the shipped studies: TOML files.

Example:

>>> study = Study(name="tiny", title="Tiny", fixed={"minutes": 0.5}, grid={"acks": ["all", "1"]}, seeds=1)
>>> [(row.cell, row.status, row.measures.lost_all) for row in rows_of(study, jobs=1)]
[(0, 'done', 0), (1, 'done', 0)]
"""

from __future__ import annotations

from replication.studies.parameters import Parameters
from replication.studies.rows import COLUMNS, Measures, Row
from replication.studies.running import make_run, rows_of
from replication.studies.study import Run, Study, parse_study
from replication.studies.summary import Cell, Estimate, summarise

__all__ = (
    "COLUMNS",
    "Cell",
    "Estimate",
    "Measures",
    "Parameters",
    "Row",
    "Run",
    "Study",
    "make_run",
    "parse_study",
    "rows_of",
    "summarise",
)
