"""Write the page beside the tables that it was made from, whole or not at all.

How: the page is written under a temporary name in the same folder and then renamed over `report.html`, so that a reader
never sees half a page and a failed run leaves the old one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report, RunInfo
from spark_analysis.report.prometheus import prometheus_text
from spark_analysis.report.terminal import summary_json

REPORT_NAME: Final = "report.html"
JSON_NAME: Final = "report.json"
PROMETHEUS_NAME: Final = "report.prom"


def write_report(out: Path, run: RunInfo) -> Path:
    """Read the tables under `out`, write `out`/report.html and return its path.

    Raises InputError when the tables cannot be read, OSError when the page cannot be written.
    """
    return write_page(out, load_report(out, run))


def write_page(out: Path, report: Report) -> Path:
    """Write the page of a loaded report to `out`/report.html and return its path."""
    return _write(out / REPORT_NAME, report_html(report))


def write_for_programs(out: Path, report: Report) -> None:
    """Write the summary as `out`/report.json and the figures of every cluster as `out`/report.prom."""
    _write(out / JSON_NAME, summary_json(report) + "\n")
    _write(out / PROMETHEUS_NAME, prometheus_text(report))


def _write(path: Path, text: str) -> Path:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path
