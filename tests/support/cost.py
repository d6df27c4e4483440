"""What a program costs in a process of its own, as the kernel counts it.

A process starts with the memory peak of the one that forked it (Linux keeps `ru_maxrss` over exec), which is that of a
whole test run here: so a small process stands between, and measures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

ADDRESS_SPACE_BYTES_MAX: Final = 6 << 30  # Compiled code and Arrow reserve more than they use.
_MEASURING: Final = f"""
import os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_AS, ({ADDRESS_SPACE_BYTES_MAX}, {ADDRESS_SPACE_BYTES_MAX}))
running = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(running.pid, 0)
with open(sys.argv[1], "w") as file:
    print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss, file=file)
"""


@attrs.frozen
class Cost:
    """A program's exit status, CPU seconds and peak of resident memory, and what it said."""

    status: int
    cpu_seconds: float
    memory_bytes: int
    said: str


def run_measured(
    arguments: Sequence[str], *, with_output: bool = False, folder: Path | None = None, **environment: str
) -> Cost:
    """Run Python with these arguments to its end, these variables added; keep standard error, and output if asked."""
    with tempfile.NamedTemporaryFile("r") as figures:
        ended = subprocess.run(
            [sys.executable, "-S", "-c", _MEASURING, figures.name, sys.executable, *arguments],
            stdout=subprocess.PIPE if with_output else subprocess.DEVNULL,
            stderr=subprocess.STDOUT if with_output else subprocess.PIPE,
            env=os.environ | environment,
            cwd=folder,
        )
        said = ended.stdout if with_output else ended.stderr
        assert ended.returncode == 0, said[-2000:]
        status, seconds, kib = figures.read().split()
    return Cost(int(status), float(seconds), int(kib) * 1024, said.decode(errors="replace"))
