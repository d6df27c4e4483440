"""`python -m tests.replication.mutants.forked --count N --seed S --reach FILE --out FILE`: a fast first look.

Draws the mutants that `python -m tests.replication.mutants` draws, prints the same table, and keeps a line in `--out`
for each that somebody notices. That command, given the same `--out`, then asks about the others in processes of their
own.

What it decides: each mutant is put into a fork of a process that has loaded everything, and only checks run that reach
the changed statement. So a mutant costs seconds, and what it says of one that is noticed is what the judges would say.

Constraints: nothing is kept of a mutant that nobody notices here: its code may run only as modules are loaded.

Source: ours.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import click
import pytest

from tests.architecture.house import ROOT
from tests.replication.mutants import campaign, histories
from tests.replication.mutants.__main__ import PLACES, all_mutants, draw
from tests.replication.mutants.code_swap import Functions, live_functions, statement_line, swap
from tests.replication.mutants.forks import in_forks
from tests.replication.mutants.judges import CAMPAIGN_S, HISTORIES_S, NEAREST_COUNT, PATIENCE, SEED, TESTS, Verdict
from tests.replication.mutants.nearest import test_files
from tests.replication.mutants.operators import Mutant
from tests.replication.mutants.reach import Reached, kept, reaching, recorded
from tests.replication.mutants.table import Judged, survivor_lines, table_lines
from tests.replication.mutants.until_noticed import Check

START_S: Final = 10.0
"""CPU seconds beside those of the checks: loops that are compiled, a first look at a folder."""
RUN_COUNT: Final = 1_000
TESTS_S: Final = 25.0
"""CPU seconds of the tests that are asked about one mutant."""


@attrs.frozen
class Judge:
    """Hold a judge's checks, what each reaches, and the CPU seconds that it has."""

    checks: Mapping[str, Check]
    reached: Sequence[Reached]
    cpu_seconds: float
    distance: Callable[[str, str], int] = lambda path, name: 0
    """How far a check, by its name, is from the module at a path: the nearest are asked first."""

    def chosen(self, mutant: Mutant) -> list[Reached]:
        """Return the checks that reach the mutant's statement."""
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        place = (mutant.path, statement_line(source, mutant.line, mutant.column))
        return reaching(self.reached, place, self.cpu_seconds, partial(self.distance, mutant.path))

    def asked(self, mutants: Sequence[Mutant], jobs: int) -> dict[str, str]:
        """Return what the judge says of each mutant that it notices, by the mutant's name."""
        functions = live_functions(sorted({mutant.path for mutant in mutants}))
        chosen = {mutant.name: self.chosen(mutant) for mutant in mutants}
        gc.freeze()  # What the forks never change is not copied into each.
        said = {}
        for mutant, done in in_forks(
            mutants,
            lambda mutant: partial(
                _noticed, mutant, functions, [self.checks[each.name] for each in chosen[mutant.name]]
            ),
            lambda mutant: START_S + PATIENCE * sum(each.cpu_seconds for each in chosen[mutant.name]),
            jobs=jobs,
        ):
            words = "did not end" if done.status is None else done.said or ("ended" if done.status else "")
            if words:
                said[mutant.name] = words
            click.echo(f"{len(said)} noticed: {words or 'NOT'}: {mutant.name}", err=True)
        gc.unfreeze()
        return said


def _noticed(mutant: Mutant, functions: Functions, checks: Sequence[Check]) -> str:
    """Put a mutant into this process, and return what the first check that notices it says."""
    if swap(mutant, functions):
        for check in checks:
            told = check.noticed()
            if told:
                return f"{check.name}: {told}"
    return ""


def campaign_checks() -> list[Check]:
    """Return the campaign's runs, more than end in its CPU seconds, after one run of each shape has compiled loops."""
    for shape in dict.fromkeys(campaign.TURN):
        campaign.noticed(shape, SEED - 1)
    seeded = enumerate(itertools.cycle(campaign.TURN), start=SEED)
    runs = itertools.islice(seeded, RUN_COUNT)
    return [Check(f"{shape} {seed}", partial(campaign.noticed, shape, seed)) for seed, shape in runs]


def explorer_checks() -> list[Check]:
    """Return the searches of the explorer."""
    return [Check(each.name, partial(histories.noticed, each)) for each in histories.searches()]


@attrs.define
class _Session:
    """Let pytest collect the tests, and do something with them instead of running them."""

    then: Callable[[list[Check]], None]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.then([Check(item.nodeid, partial(_run, session, item)) for item in session.items])
        return True


def _run(session: pytest.Session, item: pytest.Item) -> str:
    """Run one test; return its failure."""
    before = session.testsfailed
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return "failed" if session.testsfailed > before else ""


@functools.cache
def _ranks(path: str) -> Mapping[str, int]:
    """Return the rank of each test file for the module at a path, some files to a rank."""
    return {file: place // NEAREST_COUNT for place, file in enumerate(test_files(ROOT, path))}


def _test_distance(path: str, name: str) -> int:
    return _ranks(path)[name.partition("::")[0]]


def asked_tests(
    mutants: Sequence[Mutant], paths: Sequence[str], reach: Path, tests_s: float, jobs: int
) -> dict[str, str]:
    """Return what the tests say of each mutant that one of them notices."""
    said: dict[str, str] = {}

    def ask(checks: list[Check]) -> None:
        reached = kept(reach, paths, lambda: recorded(checks, paths))
        judge = Judge({check.name: check for check in checks}, reached, tests_s, _test_distance)
        said.update(judge.asked(mutants, jobs))

    pytest.main([*TESTS, *sorted(test_files(ROOT, paths[0]))], plugins=[_Session(ask)])
    return said


@click.command()
@click.option("--count", type=click.IntRange(1), default=100, help="How many mutants to draw (default 100).")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the draw (default 0).")
@click.option("--in", "places", multiple=True, default=PLACES, help="Folder or file to draw from; may be repeated.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="How many are judged at a time.")
@click.option("--spare-tests", is_flag=True, help="Ask the tests only about mutants that nobody else notices.")
@click.option("--tests-s", type=float, default=TESTS_S, help="CPU seconds of the tests asked about one mutant.")
@click.option(
    "--reach",
    type=click.Path(path_type=Path),
    required=True,
    help="File of what each test reaches; it is recorded in about ten minutes if it is not of these modules.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Append a line of JSON for each noticed.")
def main(
    count: int,
    seed: int,
    places: tuple[str, ...],
    jobs: int,
    tests_s: float,
    reach: Path,
    out: Path,
    *,
    spare_tests: bool,
) -> None:
    """Put small bugs into forks, one at a time, print who notices, and keep those that somebody notices."""
    mutants = draw(all_mutants(places), count, seed)
    paths = sorted({mutant.path for mutant in all_mutants(PLACES)})
    by_runs = []
    for checks, cpu_seconds in ((campaign_checks(), CAMPAIGN_S), (explorer_checks(), HISTORIES_S)):
        judge = Judge({check.name: check for check in checks}, recorded(checks, paths, cpu_seconds), cpu_seconds)
        by_runs.append(judge.asked(mutants, jobs))
    campaigns, histories = by_runs
    for_tests = [each for each in mutants if not spare_tests or not {each.name} & {*campaigns, *histories}]
    tests = dict.fromkeys((each.name for each in for_tests), "")
    tests |= asked_tests(for_tests, paths, reach, tests_s, jobs)
    judged = [
        Judged(each, Verdict(campaigns.get(each.name, ""), histories.get(each.name, ""), tests.get(each.name)))
        for each in mutants
    ]
    with out.open("a", encoding="utf-8") as file:
        for each in judged:
            if each.verdict.is_noticed:
                file.write(json.dumps({"name": each.mutant.name, **attrs.asdict(each.verdict)}) + "\n")
    for line in [*table_lines(judged), *survivor_lines(judged)]:
        click.echo(line)


if __name__ == "__main__":
    main()
