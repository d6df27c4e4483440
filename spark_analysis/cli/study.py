"""Define `brokerside study`, which runs a grid of settings times seeds and summarises each cell."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import click
from rich.console import Console

from broker.cli import EXIT_REFUSED, printable, takes
from broker.errors import RefusedError, UsageError
from broker.wording import counted, unknown
from replication.studies import COLUMNS, STUDIES, Study, rows_of, summarise
from replication.studies.study import BROKEN, FAILED, REFUSED, Cell, Row
from spark_analysis.cli.cluster_inputs import shown_table
from spark_analysis.session.progress import progress

_TITLES: Final = {
    "lost_share": "acknowledged writes lost",
    "unavailable_share": "time without writes",
    "leaderless_share": "time without a leader",
    "unclean_share": "elections that were unclean",
    "latency_mean_ms": "mean latency, ms",
    "latency_p99_ms": "latency, 99 %, ms",
    "latency_p50_ms": "median latency, ms",
    "factor": "replicas on disk",
}
_REASONS_MAX: Final = 5
"""How many different reasons for runs that were not done are printed, the most frequent first."""


@attrs.frozen(kw_only=True)
class StudyOptions:
    """Hold the options of `brokerside study`."""

    study: str | None
    seeds: int | None
    first_seed: int | None
    minutes: float | None
    jobs: int | None
    out: Path | None
    as_json: bool
    lists: bool


@click.command("study")
@click.argument("study", metavar="STUDY", required=False)
@click.option(
    "--seeds", type=click.IntRange(1, 1_000_000), metavar="COUNT", help="Seeds of each cell (default: the study's)."
)
@click.option("--first-seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="First seed (default: the study's).")
@click.option("--minutes", type=click.FloatRange(0.1, 100_000), metavar="M", help="Simulated minutes of each run.")
@click.option("--jobs", type=click.IntRange(1, 1_000), metavar="N", help="Processes (default: one a core).")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the rows (CSV, Parquet) and the cells (JSON).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the cells as JSON.")
@click.option("--list", "lists", is_flag=True, help="List the studies that come with the library.")
@takes(StudyOptions)
def study_command(options: StudyOptions) -> int:
    """Run a study of replication: a grid of settings times seeds, a row for each run.

    STUDY is the name of a study that comes with the library; one's own is a
    Python value, replication.studies.Study. A row has the settings, the failures, what was acknowledged and lost, and
    the time in which nothing could be written. Impossible settings and runs
    that fail are rows with their reason; broken or failed runs are status 1.

    \b
    Examples:
      brokerside study --list
      brokerside study restarts --seeds 5
      brokerside study settings --out settings-study
    """
    if options.lists:
        for name, study in STUDIES.items():
            click.echo(f"{name:<10} {study.title}")
        return 0
    study = _chosen(options)
    with progress("Studying", total=study.run_count, unit="runs") as bar:
        rows = list(rows_of(study, jobs=options.jobs, advance=bar.advance))
    cells = summarise(study, rows)
    if all(cell["refused_count"] == study.seeds for cell in cells):
        raise RefusedError(f"study {study.name}: no run is possible: {cells[0]['reason']}")
    if options.out is not None:
        _write(options.out, study, rows, cells)
    if options.as_json:
        click.echo(json.dumps(summary(study, cells), indent=2, allow_nan=False))
    else:
        _show(study, cells, rows)
    failed = sum(cell["failed_count"] + cell["broken_count"] for cell in cells)
    return EXIT_REFUSED if failed else 0


def _chosen(options: StudyOptions) -> Study:
    """Return the named study with the command line's seeds and minutes."""
    if options.study is None:
        raise UsageError(f"name a study, one of {', '.join(STUDIES)}")
    if options.study not in STUDIES:
        raise UsageError(unknown("study", options.study, STUDIES, "brokerside study --list"))
    study = STUDIES[options.study]
    changes: dict[str, Any] = {}
    if options.seeds is not None:
        changes["seeds"] = options.seeds
    if options.first_seed is not None:
        changes["first_seed"] = options.first_seed
    if options.minutes is not None:
        changes["fixed"] = {**study.fixed, "minutes": options.minutes}
    return attrs.evolve(study, **changes)


def _write(out: Path, study: Study, rows: Sequence[Row], cells: Sequence[Cell]) -> None:
    """Write the rows as CSV (RFC 4180, with a head) and Parquet, and the cells as JSON."""
    import pyarrow.parquet as pq  # Late: pyarrow is loaded for --out alone.

    from spark_analysis.studies import table_of

    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(table_of(rows), out / "rows.parquet")
    with (out / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(COLUMNS), lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(rows)
    (out / "study.json").write_text(json.dumps(summary(study, cells), indent=2, allow_nan=False) + "\n")
    click.echo(f"Written: {printable(str(out))}", err=True)


def summary(study: Study, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the study as JSON: its cells with the estimates, null where nothing was counted."""
    return {
        "study": study.name,
        "title": study.title,
        "fixed": dict(study.fixed),
        "seeds": study.seeds,
        "first_seed": study.first_seed,
        "cells": list(cells),
    }


def _show(study: Study, cells: Sequence[Cell], rows: Sequence[Row]) -> None:
    """Print a line for each cell, and below why some runs were not done."""
    heads = [*study.names, *(_TITLES.get(name, name.replace("_", " ")) for name in study.measures), "runs"]
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, 200)
    console.print(shown_table(study.title, heads, list(_lines(study, cells)), left_count=len(study.names)))
    for status in (BROKEN, REFUSED, FAILED):
        reasons = Counter(row["reason"] for row in rows if row["status"] == status)
        for reason, count in reasons.most_common(_REASONS_MAX):
            click.echo(printable(f"{counted(count, 'run')} {status}: {reason}"))
        if len(reasons) > _REASONS_MAX:
            rest = reasons.total() - sum(count for _, count in reasons.most_common(_REASONS_MAX))
            click.echo(f"{counted(rest, 'run')} {status} for {counted(len(reasons) - _REASONS_MAX, 'other reason')}")


def _lines(study: Study, cells: Sequence[Cell]) -> Iterator[list[str]]:
    for values, cell in zip(study.cells, cells, strict=True):
        yield [
            *(_word(values.get(name, "")) for name in study.names),
            *(_value_text(name, cell[name]["value"]) for name in study.measures),
            f"{cell['done_count']:,}",
        ]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value_text(name: str, value: float | None) -> str:
    """Return a value with its unit: shares in per cent."""
    if value is None:
        return "–"
    if name.endswith("_share"):
        return f"{100 * value:.2f} %" if value else "0 %"
    return f"{value:,.1f}".removesuffix(".0")
