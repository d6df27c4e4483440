"""Ask the campaign, the explorer and the tests, each in a process of its own, whether a mutant is noticed.

What it decides: a judge notices a mutant when its process says so or fails to start. The campaign and the explorer also
notice one that never ends; tests that do not end in their CPU time have said nothing. The explorer is asked about the
modules that it loads.

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
TESTS_OF_NOTICED_S: Final = 30.0
"""The CPU seconds for the tests of a mutant that the campaign has noticed: it is no gap."""
NEAREST_COUNT: Final = 4
"""How many test files run before all the others are even collected."""
SEED: Final = 5_000
PATIENCE: Final = 3
"""How many times its CPU seconds a judge may take: it looks at them after each run only."""
TESTS: Final = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not spark and not kafka and not browser", "--no-header")


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


def judged(tree: Tree, mutant: Mutant, *, explored: frozenset[str], tests_s: float, spares_tests: bool) -> Verdict:
    """Put a mutant into the tree and ask every judge; `tests_s` are the tests' CPU seconds, 0 to leave them out.

    With `spares_tests` the tests are asked only about a mutant that neither the campaign nor the explorer notices.
    """
    source = (tree.root / mutant.path).read_text(encoding="utf-8")
    with tree.changed(mutant.path, mutant.applied(source)):
        campaign = by_campaign(tree)
        histories = by_histories(tree) if mutant.path in explored else ""
        if spares_tests and (campaign or histories):
            return Verdict(campaign, histories, None)
        seconds = min(tests_s, TESTS_OF_NOTICED_S) if campaign else tests_s
        return Verdict(campaign, histories, by_tests(tree, mutant.path, seconds) if tests_s else None)


def explored_modules(tree: Tree) -> frozenset[str]:
    """Return the paths of the modules that the explorer loads."""
    words = "import sys, pathlib; from tests.replication.mutants import histories; print(*sorted("
    words += "pathlib.Path(m.__file__).relative_to(pathlib.Path.cwd()).as_posix() for m in [*sys.modules.values()] "
    words += "if (getattr(m, '__file__', None) or '').startswith(str(pathlib.Path.cwd()))))"
    done = tree.run(["-c", words], HISTORIES_S * PATIENCE)
    assert done.status == 0, done.said
    return frozenset(done.said.split())


def by_campaign(tree: Tree) -> str:
    """Return what the campaign noticed, "" if nothing."""
    return _told(tree.run(["-m", f"{__package__}.campaign", str(CAMPAIGN_S), str(SEED)], CAMPAIGN_S * PATIENCE))


def by_histories(tree: Tree) -> str:
    """Return what the explorer noticed, "" if nothing."""
    return _told(tree.run(["-m", f"{__package__}.histories", str(HISTORIES_S)], HISTORIES_S * PATIENCE))


def by_tests(tree: Tree, path: str, seconds: float = TESTS_S) -> str | None:
    """Return the first test that failed, "" if none, None if there was no time for all of them."""
    files = test_files(tree.root, path)
    for some in (files[:NEAREST_COUNT], files[NEAREST_COUNT:]):
        done = tree.run(["-m", "pytest", *TESTS, *some], seconds)
        if done.status is None:
            return None
        if told := _told(done):
            return told
    return ""


def _told(done: Done) -> str:
    if done.status is None:
        return "did not end"
    if done.status == 0:
        return ""
    lines = [line for line in done.said.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return (named or lines or [f"status {done.status}"])[-1 if not named else 0]
