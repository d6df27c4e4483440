"""`python -m tests golden DIR`: run a folder of golden vectors.

Prints `NAME: N passed, M failed` for each file and each folder of a log case, each failed case with its first
difference on the lines below, and `N passed, M failed` over all as the last line. The exit status is 0 when every case
passed, 1 when one failed, a file could not be run or there was no case at all, and 2 when the command was not
understood.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from broker.errors import shorten
from tests.golden.files import FileResult, run_folder

USAGE: Final = "usage: python -m tests golden DIR"
LINE_LENGTH_MAX: Final = 400


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    if len(arguments) != 2 or arguments[0] != "golden":
        print(USAGE, file=sys.stderr)
        return 2
    folder = Path(arguments[1])
    if not folder.is_dir():
        print(f"{folder}: no such folder\n{USAGE}", file=sys.stderr)
        return 2
    passed_count = failed_count = 0
    for result in run_folder(folder):
        print_result(result)
        passed_count += result.passed_count
        failed_count += result.failed_count
    if passed_count + failed_count == 0:
        print(f"{folder}: no golden vectors found", file=sys.stderr)
    print(f"{passed_count} passed, {failed_count} failed")
    return 0 if passed_count and not failed_count else 1


def print_result(result: FileResult) -> None:
    """Print one file's line and a line for each failure."""
    print(printable(f"{result.name}: {result.passed_count} passed, {result.failed_count} failed"))
    if result.problem is not None:
        print(printable(f"  {result.problem}"))
    for failure in result.failures:
        print(printable(f"  {failure.case}: {failure.difference}"))


def printable(text: str) -> str:
    """Return `text` on one line of any terminal, cut where a matrix would fill the screen."""
    one_line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
    return shorten(one_line.encode("ascii", "backslashreplace").decode("ascii"), LINE_LENGTH_MAX).replace("…", "...")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
