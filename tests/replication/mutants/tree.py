"""Keep a copy of the source tree in which one file at a time is changed.

What it decides: the copy holds the packages and the tests, and no compiled files; the processes that run in it write
none, so that nothing of one mutant is left for the next.

Source: ours.
"""

from __future__ import annotations

import compileall
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from tests.architecture.house import ROOT

COPIED: Final = ("broker", "placement", "log", "replication", "spark_analysis", "tests", "pyproject.toml", "README.md")
_NOT_COPIED: Final = shutil.ignore_patterns("__pycache__", "*.pyc", "reference")


@attrs.frozen
class Done:
    """Hold what came of a process: its status, None if it was ended for its CPU time, and what it said."""

    status: int | None
    said: str


@attrs.frozen
class Tree:
    """Hold a copy of the source tree."""

    root: Path

    @contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """Give a file another text in the block."""
        file = self.root / path
        before = file.read_bytes()
        file.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            file.write_bytes(before)

    def run(self, words: list[str], cpu_seconds: float) -> Done:
        """Run Python with `words` in the tree; the system ends it after some CPU seconds, however busy the machine."""
        environment = os.environ | {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.root),
            "PYTHONHASHSEED": "0",
        }
        limit = f'ulimit -t {round(cpu_seconds)} && exec "$@"'
        done = subprocess.run(
            ["sh", "-c", limit, "sh", sys.executable, *words],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        is_out_of_time = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        return Done(None if is_out_of_time else done.returncode, done.stdout)


@contextmanager
def copied_tree() -> Iterator[Tree]:
    """Copy the source tree into a temporary folder for the block."""
    with TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=_NOT_COPIED)
            else:
                shutil.copy(source, root / name)
        # Compiled once: the processes that run in the tree keep nothing, and would read every text anew.
        compileall.compile_dir(root, quiet=2)
        yield Tree(root)
