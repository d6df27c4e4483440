"""A study on Spark has the rows that processes make."""

from __future__ import annotations

import pytest

from replication.studies import Study, grid, rows_of
from spark_analysis.studies import STUDY_SCHEMA, study_rows, table_of


@pytest.mark.spark
def test_rows_on_spark_are_those_of_processes(spark) -> None:
    study = Study(
        name="tiny",
        title="Tiny",
        fixed={"minutes": 0.3, "mttf_minutes": 0.3},
        cells=({"factor": 2, "min_isr": 1}, {"replication": "quorum"}, *grid(min_isr=[4], acks=[-1, 1])),
        seeds=3,
    )
    frame = study_rows(spark, study, tasks=4)
    assert frame.columns == STUDY_SCHEMA.names
    found = frame.orderBy("cell", "seed").toArrow()
    assert found.to_pylist() == table_of(list(rows_of(study, jobs=1))).to_pylist()
