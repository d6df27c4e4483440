"""Analyse very many clusters at once, on Spark: simulated fleets and dumps of real clusters.

In a pipeline of DataFrames: `register(spark)` gives the sources (data_sources/), `parse` reads files that Spark has
listed, each module of questions/ turns partitions into answers, and sinks appends them to tables.

    session/       Find a Java, start Spark on it and stop it, and show the progress of a job.
    live/          Ask a live cluster what it is, read-only, and keep the answers as one dump.
    sources/       Read dumps and metadata logs, as the command line names them.
    tables/        List every column that jobs write, and write and read the tables.
    answers/       Answer questions about one cluster, for --ask and the DataFrame functions.
    fleet/         Read a recipe, and make, place and count each of its clusters.
    functions      Compute the partition of a key, as functions of SQL.
    data_sources/  Give Spark its data sources: dumps, metadata logs, segments, fleets.
    frames/        Turn DataFrames of partitions into DataFrames of answers, a cluster at a time.
    parse          Parse dumps out of a DataFrame of files, in batch and as a stream.
    questions/     Ask a question about every cluster of a DataFrame, a module a question.
    history        Ask of a history of clusters which of them got worse.
    sinks          Write answers to tables of a catalog, with their run and time, a partition a day and run.
    studies        Make the runs of a study of replication on Spark: a row for each run.
    kernels        Turn numbers of clusters or dumps into Arrow batches of every table.
    engines        Run a kernel, and write the tables that it finds.
    uri_folder     Keep a report in a folder at a URI that only Spark's file systems reach.
    spark_engine   Run a kernel on executors, and let Spark's own writer write the tables that it finds.
    jobs           Run a fleet or dumps from input to tables.
    report/        Turn the tables into one HTML page and a summary for the terminal.
    examples/      Start from short programs that read the tables: with pandas, DuckDB, Spark.
    pytest_plugin  Give tests the fixture `kafka_cluster`.
    cli/           Run the `brokerside` command, each package's commands under one roof.

`register` also gives a session the SQL functions; `report_tables(dumps)` returns the tables of a
report as Arrow, without Spark. What needs pyspark is imported when it is used, so that the rest starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_analysis.data_sources.registry import register
    from spark_analysis.report.in_process import report_tables
    from spark_analysis.tables.columns import Column, Table
    from spark_analysis.tables.schemas import TABLES
else:  # These need pyarrow, and one of them pyspark.
    _MODULES = {"register": "data_sources.registry", "report_tables": "report.in_process"}

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"spark_analysis.{_MODULES.get(name, 'tables.schemas')}"), name)


__all__ = ("TABLES", "Column", "Table", "register", "report_tables")
