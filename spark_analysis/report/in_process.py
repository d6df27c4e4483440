"""Report on dumps in this process, without Spark, and return the tables as Arrow.

What it decides: the inputs are those of `brokerside report`, named and joined to moments alike, and the tables are
those that it writes, row by row. Nothing stays on disk.

How: the job runs on the local engine and writes to a temporary folder, from which the tables are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from broker.errors import UsageError
from spark_analysis.answers.registry import asked_of
from spark_analysis.engines import LocalEngine
from spark_analysis.jobs import analyse_dumps
from spark_analysis.session.progress import progress
from spark_analysis.sources.dumps import read_zones
from spark_analysis.sources.inputs import check_inputs, dump_inputs, moment, racks_in, with_groups_of, with_sizes_of
from spark_analysis.tables.schemas import TABLES
from spark_analysis.tables.write import read_table


def report_tables(
    dumps: Sequence[str],
    *,
    racks: str | None = None,
    sizes: Sequence[str] = (),
    format: str | None = None,  # noqa: A002 - the field's word, and the command line's.
    min_isr: int | None = None,
    moments: bool | None = None,
    at: Sequence[str] = (),
    ask: Sequence[str] = (),
    assume: Sequence[str] = (),
    groups: Sequence[str] = (),
    group_zones: str | None = None,
) -> dict[str, pa.Table]:
    """Return the tables of a report on these dumps by name; the arguments are those of `brokerside report`.

    A dump is a path, a pattern, a directory or NAME=PATH. Each question of `ask` has a table, too. An input that cannot
    be used has a `fault` in the table of inputs. Raises InputError if no input can be used, and UsageError for
    arguments that contradict each other. Memory: all tables are held at once.
    """
    if isinstance(dumps, str) or not dumps:
        raise UsageError(f"dumps is {dumps!r}; allowed is a list of one path or more")
    beside = (*(each for each in (racks, group_zones) if each is not None), *sizes, *groups)
    named = dump_inputs(tuple(map(str, dumps)), format, moments, tuple(map(moment, at)), beside=beside)
    inputs = with_groups_of(with_sizes_of(named, tuple(sizes)), tuple(groups))
    if group_zones is not None and not groups:
        raise UsageError("group_zones has no effect without groups; give both, or neither")
    asked = asked_of(tuple(ask), tuple(assume), given_groups=bool(groups))
    of_racks = None if racks is None else racks_in(racks)
    zones = None if group_zones is None else read_zones(group_zones)
    check_inputs(inputs)
    with TemporaryDirectory(prefix="brokerside-") as name:
        out = Path(name)
        analyse_dumps(
            LocalEngine(),
            inputs,
            of_racks,
            out,
            progress=partial(progress, quiet=True),
            min_insync_replicas_default=min_isr,
            asked=asked,
            zones=zones,
        )
        return {table.name: read_table(out, table) for table in (*TABLES, *(one.question.run_table for one in asked))}
