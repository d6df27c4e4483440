"""Turn the tables of a run into one HTML file that opens offline, ten lines for a terminal, and JSON. No Spark.

- figures: Format numbers for people: one function for each kind of number.
- markup: Write HTML and SVG elements; escape every text that is not markup.
- figure: Draw texts, lines and a titled figure, with short coordinates and round axes.
- rows: Define the rows of the tables that the report shows.
- rest: Count the clusters of a large fleet that have no row on the page, in columns.
- model: Define the objects that the page is built from.
- states: Decide which state or skew of a cluster is the worst, and name it in words.
- answers: Read the answers to the questions of `--ask`, for the page, a terminal and JSON.
- load: Read the Parquet tables of one run, without Spark, into the values of the report.
- commands: Build the commands that a report names for one cluster.
- overview: Say what was read, in words and totals.
- moments: The moments of clusters that were dumped several times.
- since: Say of each cluster what got worse since it was dumped before.
- now: Count the partitions in each bad state now, and list them.
- distance: Group the clusters by how far they are from the best possible spread.
- ranking: List the columns of the table of all clusters.
- recovery: Say what gives the partitions of one cluster leaders and replicas again.
- advice: Decide what to do next with one cluster.
- broker_chart: Show the brokers of one cluster: a chart of their loads, and a table of their numbers.
- detail: Text of the page about one cluster, beside its tables.
- shared: Count, and for many brokers draw, the partitions that each two share, in rack order.
- distribution_chart: Draw the distribution over clusters of the share that would have to move.
- glossary: Define the words of the page.
- html: Render the page from `templates/`, one file that loads nothing.
- numbers: Give the numbers of the page by name, for programs.
- terminal: Summarise the report in ten lines for a terminal, and as JSON for programs.
- gates: Decide whether a report passes the gates that a script asks for with `--fail-on`.
- write: Write the page beside the tables that it was made from, whole or not at all.
- in_process: Report on dumps in this process, and return the tables as Arrow.
- plan_page: Write a plan as an HTML page.
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
