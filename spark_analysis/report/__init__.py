"""Turn the tables of a run into one HTML file that opens offline, ten lines for a terminal, and JSON. No Spark."""

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
