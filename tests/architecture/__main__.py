"""`python -m tests.architecture [surface | docs OUT | words]`: what the house writes about itself.

Without a word, or with `surface`, it writes the snapshot of the public surface anew. `docs OUT` writes the API
reference to the folder OUT and ends with status 1 where pdoc warns. `words` prints the first lines of all public
docstrings and the help of all commands as one list, and on the error stream each line that fails a rule of wording,
and why.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from broker.wording import counted
from tests.architecture import docs, public_api, words

USAGE = "usage: python -m tests.architecture [surface | docs OUT | words]"


RULES = "tests/architecture/words.py has the rules"


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    match list(arguments):
        case [] | ["surface"]:
            print(f"written: {public_api.write().name}")
            return 0
        case ["docs", out]:
            return _write_docs(Path(out))
        case ["words"]:
            return _print_words()
    print(USAGE, file=sys.stderr)
    return 2


def _write_docs(out: Path) -> int:
    if not docs.is_possible():
        print("pdoc is not installed; it comes with the extra dev: pip install -e '.[dev]'", file=sys.stderr)
        return 2
    warnings = docs.build(out, docs.documented_modules())
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"written: {out / 'index.html'}; warnings: {len(warnings)}")
    return 1 if warnings else 0


def _print_words() -> int:
    for line in words.everything():
        print(line)
    failures = words.failures()
    for failure in failures:
        print(f"{failure.package}: {failure}", file=sys.stderr)
    print(
        f"{counted(len(failures), 'rule')} of wording {'is' if len(failures) == 1 else 'are'} broken; {RULES}",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
