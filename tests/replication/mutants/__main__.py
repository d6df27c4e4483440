"""`python -m tests.replication.mutants --count N --seed S`: bugs that nobody chose, and who notices them.

Draws N mutants of the modules below `--in`, puts each into a copy of the tree, asks the campaign (20 CPU s), the
explorer (5 CPU s) and the tests, and prints a table by module, the two shares, and the survivors. `--out FILE` keeps a
line of JSON for each; the same command goes on where it was stopped.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import queue
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import click

from tests.architecture.house import ROOT
from tests.replication.mutants import judges
from tests.replication.mutants.judges import Verdict, judged
from tests.replication.mutants.operators import Mutant, mutants_of
from tests.replication.mutants.table import Judged, survivor_lines, table_lines
from tests.replication.mutants.tree import copied_tree

PLACES: Final = ("replication/rules", "replication/roles", "log/partition", "replication/groups", "broker/group")

NOT_CHANGED: Final = (
    *("__init__.py", "cli.py", "chart.py", "table.py", "episodes.py", "messages.py", "layout.py"),
    *("checker.py", "invariants.py", "log_invariants.py", "coordinator_checks.py", "views.py", "counts.py"),
    *("ledger.py", "extension.py", "plan.py", "scenario.py", "scenarios.py", "scenario_file.py", "seeded_scenario.py"),
)
"""Doors, commands and charts, plain values, what checks or counts a run and what draws one are no replication code."""


def all_mutants(places: tuple[str, ...]) -> list[Mutant]:
    """Return every mutant of the modules at or below `places`."""
    found: list[Mutant] = []
    for place in places:
        files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
        for file in files:
            if file.name not in NOT_CHANGED:
                found += mutants_of(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
    return found


def draw(population: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw mutants, as many of each operator as of the others while it has some left."""
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in random.Random(seed).sample(population, len(population)):
        by_operator.setdefault(mutant.operator, []).append(mutant)
    rounds = itertools.zip_longest(*(by_operator[operator] for operator in sorted(by_operator)))
    return [mutant for each in rounds for mutant in each if mutant is not None][:count]


@click.command()
@click.option("--count", type=click.IntRange(1), default=100, help="How many mutants to draw (default 100).")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the draw (default 0).")
@click.option("--in", "places", multiple=True, default=PLACES, help="Folder or file to draw from; may be repeated.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="How many are judged at a time.")
@click.option("--without-tests", is_flag=True, help="Ask the campaign and the explorer alone.")
@click.option("--spare-tests", is_flag=True, help="Ask the tests only about mutants that nobody else notices.")
@click.option("--tests-s", type=float, default=judges.TESTS_S, help="CPU seconds for the tests of one mutant.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep a line of JSON for each mutant, and go on from it.")
@click.option("--names", type=click.Path(path_type=Path, exists=True), help="Judge the mutants of a file of --out.")
def main(
    count: int,
    seed: int,
    places: tuple[str, ...],
    jobs: int,
    out: Path | None,
    names: Path | None,
    tests_s: float,
    *,
    without_tests: bool,
    spare_tests: bool,
) -> None:
    """Put small bugs in, one at a time, and print who notices."""
    population = all_mutants(places)
    if names is None:
        drawn = draw(population, count, seed)
    else:
        wanted = {json.loads(line)["name"] for line in names.read_text(encoding="utf-8").splitlines()}
        drawn = [mutant for mutant in population if mutant.name in wanted]
    known = {} if out is None or not out.exists() else dict(_kept(out))
    click.echo(f"{len(drawn)} of {len(population):,} mutants, {len(known)} of them judged before", err=True)
    tasks = [mutant for mutant in drawn if mutant.name not in known]
    for result in _judge_all(tasks, jobs, 0.0 if without_tests else tests_s, spare_tests):
        known[result.mutant.name] = result.verdict
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": result.mutant.name, **attrs.asdict(result.verdict)}) + "\n")
        who = [name for name, told in attrs.asdict(result.verdict).items() if told]
        click.echo(f"{len(known)}/{len(drawn)} {', '.join(who) or 'NOBODY'}: {result.mutant.name}", err=True)
    results = [Judged(mutant, known[mutant.name]) for mutant in drawn if mutant.name in known]
    for line in [*table_lines(results), *survivor_lines(results)]:
        click.echo(line)


def _kept(out: Path) -> Iterator[tuple[str, Verdict]]:
    """Yield what a former run kept."""
    for line in out.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        yield row.pop("name"), Verdict(**row)


def _judge_all(tasks: list[Mutant], jobs: int, tests_s: float, spares_tests: bool) -> Iterator[Judged]:
    """Judge the mutants in processes, each with a tree of its own, and yield the results as they come."""
    waiting: Any = multiprocessing.Queue()
    done: Any = multiprocessing.Queue()
    for task in tasks:
        waiting.put(task)
    workers = [multiprocessing.Process(target=_work, args=(waiting, done, tests_s, spares_tests)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    try:
        for _ in tasks:
            result = done.get()
            if isinstance(result, str):
                raise click.ClickException(result)
            yield result
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _work(waiting: Any, done: Any, tests_s: float, spares_tests: bool) -> None:
    with copied_tree() as tree:
        for told in (judges.by_campaign(tree), judges.by_histories(tree)):
            if told:
                done.put(f"the unchanged tree is noticed: {told}")
                return
        explored = judges.explored_modules(tree)
        while True:
            try:
                mutant = waiting.get(timeout=1)
            except queue.Empty:
                return
            done.put(
                Judged(mutant, judged(tree, mutant, explored=explored, tests_s=tests_s, spares_tests=spares_tests))
            )


if __name__ == "__main__":
    sys.exit(main())
