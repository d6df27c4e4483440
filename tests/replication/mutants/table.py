"""Count by module who noticed, and draw the table.

What it decides: a row for each package of modules, and the shares that matter: how many mutants the campaign notices by
itself, of those that the campaign or a test notices, and how many mutants anybody notices. Equivalent mutants are left
out of both. Tests that were not run to the end may yet notice: where the campaign is silent, they count as if they had,
in the first share, and as if they had not in the second.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import attrs

from tests.replication.mutants.equivalents import reason_of
from tests.replication.mutants.judges import Verdict
from tests.replication.mutants.operators import Mutant


@attrs.frozen
class Judged:
    """Hold a mutant and what came of it."""

    mutant: Mutant
    verdict: Verdict

    @property
    def is_equivalent(self) -> bool:
        """Return whether the mutant is known to change nothing that could be observed."""
        return reason_of(self.mutant) is not None


HEADER = f"{'module':<34} {'mutants':>7} {'equivalent':>10} {'campaign':>8} {'explorer':>8} {'tests':>6} {'nobody':>6}"


def table_lines(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines of the table, and the shares below."""
    yield HEADER
    for room in sorted({_room(each) for each in judged}):
        yield _row(room, [each for each in judged if _room(each) == room])
    yield _row("all", judged)
    real = [each for each in judged if not each.is_equivalent]
    known = [each for each in real if each.verdict.campaign or each.verdict.tests or each.verdict.tests is None]
    yield _share(
        "the campaign notices",
        [bool(each.verdict.campaign) for each in known],
        "mutants that it or a test notices, or for which the tests had no time",
    )
    yield _share("anybody notices", [each.verdict.is_noticed for each in real], "mutants that are not equivalent")


def survivor_lines(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield a line for each mutant that nobody noticed, equivalent ones with their reason."""
    for each in judged:
        if not each.verdict.is_noticed:
            reason = reason_of(each.mutant)
            yield f"{each.mutant.path}:{each.mutant.line} {each.mutant.name.partition(' ')[2]}" + (
                f"\n    equivalent: {reason}" if reason else ""
            )


def _room(judged: Judged) -> str:
    return PurePosixPath(judged.mutant.path).parent.as_posix()


def _row(name: str, judged: Sequence[Judged]) -> str:
    real = [each for each in judged if not each.is_equivalent]
    counts = (
        len(judged),
        len(judged) - len(real),
        sum(bool(each.verdict.campaign) for each in real),
        sum(bool(each.verdict.histories) for each in real),
        sum(bool(each.verdict.tests) for each in real),
        sum(not each.verdict.is_noticed for each in real),
    )
    return f"{name:<34} {counts[0]:>7} {counts[1]:>10} {counts[2]:>8} {counts[3]:>8} {counts[4]:>6} {counts[5]:>6}"


def _share(what: str, noticed: Sequence[bool], of: str) -> str:
    share = f"{sum(noticed) / len(noticed):.1%}" if noticed else "none"
    return f"{what} {sum(noticed)} of {len(noticed)} {of}: {share}"
