"""CPU and memory of a process and all that it started: a JVM, its workers."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")

MAIN: Final = "from spark_analysis.cli import main; main()"
"""What a Python process runs as `brokerside`."""
POLL_SECONDS: Final = 0.05


def processes_below(root: int) -> dict[int, list[str]]:
    """The fields of /proc/PID/stat, from the state on, of a process and all below it."""
    stats: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # A process may end while we look.
            with contextlib.suppress(OSError):
                stats[int(entry.name)] = (entry / "stat").read_text().rsplit(")", 1)[1].split()
    below = {root: stats[root]}
    grown = True
    while grown:
        more = {pid: stat for pid, stat in stats.items() if int(stat[1]) in below and pid not in below}
        below |= more
        grown = bool(more)
    return below


def tree_cpu_seconds(root: int) -> float:
    """CPU of a process and everything below it; children that ended are in their parent's account."""
    return sum(sum(map(int, stat[11:15])) for stat in processes_below(root).values()) / TICKS


def tree_memory_bytes(root: int) -> int:
    """Resident memory of a process and everything below it; pages that they share count for each."""
    return sum(int(stat[21]) for stat in processes_below(root).values()) * os.sysconf("SC_PAGE_SIZE")


def process_cpu_seconds(pid: int) -> float:
    """CPU of one process alone, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / TICKS


def jvm_of(root: int) -> int:
    """The one JVM among the processes that a process started."""
    (jvm,) = [pid for pid in processes_below(root) if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
    return jvm
