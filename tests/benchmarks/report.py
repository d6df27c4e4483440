"""What every benchmark says beside its figures: on which machine, and in one table."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table


def describe_machine(*packages: str) -> dict[str, str]:
    """Return processor, cores usable, memory and versions, by name, for the reader to judge the figures by."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def show(title: str, machine: Mapping[str, str], rows: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    """Print the rows, which all have the same keys, as one table or as one JSON document."""
    if as_json:
        print(json.dumps({"title": title, "machine": dict(machine), "rows": [dict(row) for row in rows]}, indent=2))
        return
    table = Table()
    for name, value in rows[0].items():
        table.add_column(name, justify="right" if isinstance(value, int | float) or value is None else "left")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(title, highlight=False)
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
