"""Give every row of a DataFrame the run that made it and the time of what it says.

`run_id` and `observed_at` come first; questions take them as keys, so that each night is a moment of a cluster. Both
come from the caller; a time without a zone is refused, as it would depend on the session.

Example: with_run(measures(partitions), "night-7", datetime(2026, 11, 21, tzinfo=UTC))
"""

from __future__ import annotations

import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from broker.errors import UsageError

RUN_COLUMNS: Final = ("run_id", "observed_at")


def with_run(rows: DataFrame, run_id: str, observed_at: datetime.datetime) -> DataFrame:
    """Return the rows with the columns `run_id` and `observed_at` before the others.

    Raises UsageError for rows that have one of them, for an empty run, and for a time without a zone.
    """
    for name in RUN_COLUMNS:
        if name in rows.columns:
            raise UsageError(f"the DataFrame has a column {name!r} already")
    if not run_id:
        raise UsageError("run_id is empty; a name of the run is needed")
    if observed_at.tzinfo is None:
        raise UsageError(f"observed_at is {observed_at}, without a time zone; one is needed, such as UTC")
    stamps = {
        "run_id": F.lit(run_id).alias("run_id", metadata={"comment": "Run that made the row"}),
        "observed_at": F.lit(observed_at).alias("observed_at", metadata={"comment": "Time of what the row says"}),
    }
    return rows.select(*stamps.values(), *rows.columns)
