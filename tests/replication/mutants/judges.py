"""Ask the campaign, the explorer and the tests, each in a process of its own, whether a mutant is noticed.

What it decides: a judge notices a mutant when its process says so or fails to start. The campaign and the explorer also
notice one that never ends; tests that do not end in their CPU time have said nothing.

Constraints: the unchanged tree is judged first: a judge that complains of it would notice everything.

Source: ours.
"""

from __future__ import annotations

from typing import Final

import attrs

from tests.replication.mutants.nearest import test_files
from tests.replication.mutants.operators import Mutant
from tests.replication.mutants.tree import Done, Tree

CAMPAIGN_S: Final = 20.0
HISTORIES_S: Final = 5.0
TESTS_S: Final = 900.0
SEED: Final = 1_000
_PATIENCE: Final = 3
"""How many times its CPU seconds a judge may take: it looks at them after each run only."""
_TESTS: Final = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not spark and not kafka and not browser", "--no-header")


@attrs.frozen
class Verdict:
    """Hold who noticed a mutant, each with its words; "" where it was not noticed, None where nobody asked."""

    campaign: str | None
    histories: str | None
    tests: str | None

    @property
    def is_noticed(self) -> bool:
        """Return whether anybody noticed."""
        return bool(self.campaign or self.histories or self.tests)


def judged(tree: Tree, mutant: Mutant, *, with_tests: bool) -> Verdict:
    """Put a mutant into the tree and ask every judge."""
    source = (tree.root / mutant.path).read_text(encoding="utf-8")
    with tree.changed(mutant.path, mutant.applied(source)):
        return Verdict(by_campaign(tree), by_histories(tree), by_tests(tree, mutant.path) if with_tests else None)


def by_campaign(tree: Tree) -> str:
    """Return what the campaign noticed, "" if nothing."""
    return _told(tree.run(["-m", f"{__package__}.campaign", str(CAMPAIGN_S), str(SEED)], CAMPAIGN_S * _PATIENCE))


def by_histories(tree: Tree) -> str:
    """Return what the explorer noticed, "" if nothing."""
    return _told(tree.run(["-m", f"{__package__}.histories", str(HISTORIES_S)], HISTORIES_S * _PATIENCE))


def by_tests(tree: Tree, path: str) -> str | None:
    """Return the first test that failed, "" if none, None if there was no time for all of them."""
    done = tree.run(["-m", "pytest", *_TESTS, *test_files(tree.root, path)], TESTS_S)
    return None if done.status is None else _told(done)


def _told(done: Done) -> str:
    if done.status is None:
        return "did not end"
    if done.status == 0:
        return ""
    lines = [line for line in done.said.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return (named or lines or [f"status {done.status}"])[-1 if not named else 0]
