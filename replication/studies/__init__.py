"""Studies: cells of settings times seeds, a row a run.

- parameters: The parameters of one run of a study, and what is counted in it.
- isr_run: One simulation of Kafka's replication under failures drawn from the seed, and its measures.
- quorum: A log on a majority quorum under the failures of a study, and its measures.
- study: A study, the rows of its runs, a line for each of its cells, and the shipped studies.
"""

from __future__ import annotations

from replication.studies.parameters import Measures, Parameters
from replication.studies.study import COLUMNS, STUDIES, Study, grid, rows_of, summarise

__all__ = ("COLUMNS", "STUDIES", "Measures", "Parameters", "Study", "grid", "rows_of", "summarise")
