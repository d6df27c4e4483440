"""Turn the tables of a run into one HTML file that opens offline, ten lines for a terminal, and JSON. No Spark.

- load: Read the Parquet tables of one run, without Spark, into the values of the report.
- model: Define the objects that the page is built from.
- rows: Define the rows of the tables that the report shows.
- rest: Count the clusters of a large fleet that have no row on the page, in columns and without an object a cluster.
- html: Write the page: sections in the order of a reader's questions, in one file that loads nothing.
- moments: Show the moments of clusters that were dumped several times: fenced brokers, and partitions in each state.
- now: Show the partitions in a bad state now: a tile for each bad state, and the partitions behind it.
- out_of_sync: Show which brokers are missing from ISRs, and which of them explain the under-replicated partitions.
- queries: Show where the rest of a shortened list of partitions is, with the query that reads it.
- states: Decide which state or skew of a cluster is the worst, and name it in words.
- distance: Show how far the clusters are from the best possible spread of replicas, leaders and bytes.
- changes: Show what changed between successive dumps of one cluster, one comparison after the other.
- ranking: Show all clusters in one table, worst first, to sort, filter and page through.
- detail: Show one cluster: measures and optimum, brokers, racks, shared partitions, topics and violations.
- commands: Build the commands that a report names for one cluster, with the inputs and options that it was given.
- advice: Show what to do next with one cluster: least plans, worst outages, restarts, and the commands.
- brokers: Show the brokers of one cluster: a chart of all of them, and a table of their numbers.
- heat_map: Show which brokers share partitions, broker by broker in rack order.
- violations: Show the broken constraints of one cluster: each constraint with its partitions, brokers and racks.
- overview: Show the inputs of the analysis, every row of them accounted for, and the command that repeats the run.
- answered: Read the answers to the questions of `--ask` from the tables of a run.
- answers: Show the answers to the questions of `--ask`: a section each, lines for a terminal, objects in JSON.
- glossary: Define every number on the page: formula, unit, range, optimum and source.
- terminal: Summarise the report in ten lines for a terminal, and as JSON for programs.
- gates: Decide whether a report passes the gates that a script asks for with `--fail-on`.
- prometheus: Write the figures of a report as Prometheus text, for a node exporter's textfile collector.
- in_process: Report on dumps in this process, without Spark, and return the tables as Arrow.
- write: Write the page beside the tables that it was made from, whole or not at all.
- plan_page: Write a plan as an HTML page: cost beside the bound, brokers before and after, the commands.
- parts: Build the pieces that several sections of the page share: sections, tables, cells, notes.
- figures: Format numbers for people: one function for each kind of number.
- broker_chart: Draw the load of each broker of one cluster in rack order, with the range of equal shares behind.
- distribution_chart: Draw the distribution over clusters of the share that would have to move, as SVG inside the page.
"""

from __future__ import annotations

from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report, RunInfo
from spark_analysis.report.terminal import summary_json, terminal_summary
from spark_analysis.report.write import write_page, write_report

__all__ = (
    "Report",
    "RunInfo",
    "load_report",
    "report_html",
    "summary_json",
    "terminal_summary",
    "write_page",
    "write_report",
)
