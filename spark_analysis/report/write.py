"""Write the page beside the tables that it was made from, whole or not at all.

How: the page is written under a temporary name in the same folder and then renamed over `report.html`, so that a reader
never sees half a page and a failed run leaves the old one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from broker.errors import InputError
from broker.wording import printable
from spark_analysis.report.commands import ELECTIONS
from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.model import QUANTITIES, ClusterRow, Report, RunInfo
from spark_analysis.report.recovery import election_files
from spark_analysis.report.states import STATES
from spark_analysis.report.terminal import summary_json
from spark_analysis.tables.place import TABLES_FOLDER

REPORT_NAME: Final = "report.html"
JSON_NAME: Final = "report.json"
PROMETHEUS_NAME: Final = "report.prom"
WRITTEN: Final = (REPORT_NAME, JSON_NAME, PROMETHEUS_NAME, ELECTIONS, TABLES_FOLDER)
"""All files and folders of a report."""
_COUNTS: Final = (
    ("brokers", "broker_count", "Brokers registered."),
    ("partitions", "partition_count", "Partitions."),
    ("replicas", "replica_count", "Replicas."),
    ("size_bytes", "size_bytes", "Bytes of all replicas."),
)


def write_report(out: Path, run: RunInfo) -> Path:
    """Read the tables under `out`, write `out`/report.html and return its path.

    Raises InputError when the tables cannot be read, OSError when the page cannot be written.
    """
    return write_page(out, load_report(out, run))


def write_page(out: Path, report: Report) -> Path:
    """Write the page of a loaded report to `out`/report.html and return its path."""
    return _write(out / REPORT_NAME, report_html(report))


def write_for_programs(out: Path, report: Report) -> None:
    """Write the summary as `out`/report.json, its figures as report.prom, and the files of elections."""
    _write(out / JSON_NAME, summary_json(report) + "\n")
    _write(out / PROMETHEUS_NAME, prometheus_text(report))
    _write_elections(out, election_files(report))


def _write_elections(out: Path, files: Mapping[str, str]) -> None:
    """Write the files of elections, and remove those of an earlier run."""
    folder = out / ELECTIONS
    if folder.is_symlink():
        raise InputError("is a link; nothing is written through it", source=str(folder))
    if folder.is_dir():
        for kind in ("unclean", "preferred"):
            for path in folder.glob(f"*-{kind}.json"):
                path.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
    for name, text in files.items():
        (out / name).parent.mkdir(exist_ok=True)
        _write(out / name, text)


def _write(path: Path, text: str) -> Path:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def prometheus_text(report: Report) -> str:
    """Return the gauges of the current clusters, grouped by metric, in order of rank.

    Of a fleet beyond `ROWS_MAX` clusters those are written that rank first, as a comment says.
    """
    rows = report.current_rows
    lines: list[str] = []
    for name, field, text in _COUNTS:
        found = [(_labels(row), getattr(row.facts, field)) for row in rows]
        lines += _metric(name, text, found)
    in_state = [(_labels(row, ("state", state.key)), state.of(row.facts)) for row in rows for state in STATES]
    lines += _metric("partitions_in_state", "Partitions in a state, such as leaderless.", in_state)
    shares = [
        (_labels(row, ("quantity", name)), spread.moves_share)
        for row in rows
        for name in QUANTITIES
        if (spread := row.over_brokers.of(name)) is not None
    ]
    lines += _metric("moves_share", "Share of a quantity that has to move until brokers are even, 0 to 1.", shares)
    lines += _metric("rows_rejected", "Rows of the inputs that could not be used.", [("", report.rows_rejected)])
    unusable = [("", report.unusable.count)] if report.run.kind == "dumps" else []
    lines += _metric("inputs_unusable", "Inputs of which nothing could be used.", unusable)
    if report.rest.count:
        said = f"# The first {len(rows)} of {report.current_count} clusters by rank; tables/clusters has all of them."
        lines.insert(0, said)
    return "\n".join(lines) + "\n"


def _metric(name: str, text: str, found: Iterable[tuple[str, float | None]]) -> list[str]:
    samples = [f"brokerside_{name}{labels} {value!r}" for labels, value in found if value is not None]
    return [f"# HELP brokerside_{name} {text}", f"# TYPE brokerside_{name} gauge", *samples] if samples else []


def _labels(row: ClusterRow, *more: tuple[str, str]) -> str:
    pairs = (("cluster", row.facts.cluster), ("placer", row.facts.placer), *more)
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}"


def _escaped(value: str) -> str:
    r"""Return a label's value; characters that are not printable, such as U+202E, stand as their escape, \\u202e."""
    lines = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in value.split("\n"))
    return "\\n".join(lines)
