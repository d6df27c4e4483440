"""Define `brokerside groups assign`, which prints Kafka's assignment for given subscriptions, offline.

What it decides: nothing that the assignors do not; it shows who gets what, what moved and why, and how that compares
with the best that could be, for one assignor or for all side by side.

Constraints: standard output carries the answer; a file that cannot be used ends with status 2, an assignor that
refuses, as Kafka's would throw, with status 1. Names are other people's data, and printed escaped.

Source: ours; kafka-consumer-groups (4.0) for words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import attrs
import click

from broker.cli import EXIT_REFUSED, kafka_option, printable
from broker.cli_options import JAVA_SEED
from broker.entropy import SplitMix64
from broker.errors import RefusedError, UsageError
from broker.ids import TopicPartition
from broker.releases import NEWEST, Release
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.group_spec import GroupSpec, Previous, read_group_spec, read_previous
from placement.consumer.measures import Measures, measure
from placement.consumer.moves import Move, moves_of
from placement.consumer.optimum import Optimum, optimum_of
from placement.consumer.registry import CORRECTED, KAFKAS, load_assignor

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
MOVES_SHOWN_MAX: Final = 50  # A screen of reasons; --json has all.


@attrs.frozen
class Answer:
    """Hold one assignor's result: an assignment with its measures and moves, or its refusal."""

    assignor: str
    assignment: GroupAssignment | None = None
    measures: Measures | None = None
    moves: tuple[Move, ...] = ()
    refusal: RefusedError | None = None


@click.command("assign")
@click.argument("spec", type=_FILE)
@click.option(
    "--assignor",
    "name",
    default="range",
    show_default=True,
    help=f"Assignor: {', '.join(KAFKAS)}, or one that a package offers.",
)
@click.option(
    "--previous", type=_FILE, help="Former assignment: JSON, or the output of kafka-consumer-groups --describe."
)
@click.option("--compare", is_flag=True, help="Compare all of Kafka's assignors and the one of --assignor.")
@click.option("--corrected", is_flag=True, help="Use the sticky assignors without Kafka's known defects.")
@kafka_option()
@click.option(
    "--seed", type=JAVA_SEED, default=0, show_default=True, help="Seed of assignors that draw; Kafka's never draw."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON with all moves; --previous reads it back.")
def assign_command(
    spec: Path,
    name: str,
    previous: Path | None,
    compare: bool,
    corrected: bool,
    release: Release,
    seed: int,
    as_json: bool,
) -> int:
    """Print the assignment that Kafka would make for the group in SPEC.

    \b
    SPEC is JSON:
      {"topics": [{"topic": "orders", "partitions": 4},
                  {"topic": "audit", "partitions": 3}],
       "members": [{"member_id": "c0", "topics": ["orders", "audit"]},
                   {"member_id": "c1", "topics": ["orders"], "rack_id": "a",
                    "group_instance_id": "i1"}]}

    A topic may have "topic_id" and "replica_racks", a list of racks for each partition.

    \b
    What members held is the table that kafka-consumer-groups --describe prints,
    or JSON:
      {"generation": 4,
       "members": [{"member_id": "c0",
                    "partitions": [{"topic": "orders", "partitions": [0, 1]}]}]}

    \b
    brokerside groups assign group.json --assignor sticky --previous before.json
    brokerside groups assign group.json --compare
    """
    if corrected and not compare and name not in CORRECTED:
        raise UsageError(f"--corrected has no effect with --assignor {name}; it is for {' and '.join(CORRECTED)}")
    asked = read_group_spec(spec.read_bytes(), source=spec.name)
    before = Previous({}, {}) if previous is None else read_previous(previous.read_bytes(), source=previous.name)
    names = list(dict.fromkeys([*KAFKAS, name])) if compare else [name]
    answers = answer_all(asked, before, names, corrected=corrected, seed=seed, release=release)
    if as_json:
        click.echo(json.dumps(_compared_json(answers) if compare else _answer_json(answers[0])))
    else:
        held_count = len({one for held in before.held.values() for one in held})
        for line in compared_lines(answers, held_count) if compare else answer_lines(answers[0], held_count):
            click.echo(line)
    refusals = [answer.refusal for answer in answers if answer.refusal is not None]
    if refusals and not compare:
        click.echo(f"{name}: Kafka throws {refusals[0].kafka_class}: {printable(str(refusals[0]))}", err=True)
    return EXIT_REFUSED if refusals else 0


def answer_all(
    asked: GroupSpec, before: Previous, names: list[str], *, corrected: bool, seed: int, release: Release = NEWEST
) -> tuple[Answer, ...]:
    """Return the result of each assignor; raise UsageError for an unknown name."""
    spec = asked.holding(before)
    group = Group.of(spec.members, spec.topics)
    assignors = [(name, load_assignor(name, corrected=corrected, release=release)) for name in names]
    optimum = optimum_of(group)
    answers = []
    for name, assignor in assignors:
        try:
            assignment = assignor.assign(group, SplitMix64(seed))
        except RefusedError as refusal:
            answers.append(Answer(name, refusal=refusal))
        else:
            answers.append(_answered(name, assignment, optimum, before))
    return tuple(answers)


def _answered(name: str, assignment: GroupAssignment, optimum: Optimum | None, before: Previous) -> Answer:
    measures = None if optimum is None else measure(assignment, optimum)
    return Answer(name, assignment, measures, tuple(moves_of(assignment, before.held)))


def answer_lines(answer: Answer, held_count: int) -> Iterator[str]:
    """Yield one result as text: a line for each member, then moves, then measures."""
    if answer.assignment is None:
        return
    group = answer.assignment.group
    width = max([6, *(len(printable(member)) for member in group.members)])
    yield f"{'member':<{width}}  {'count':>5}  partitions"
    for member, row in zip(group.members, answer.assignment.rows.lists(), strict=True):
        shown = " ".join(map(str, answer.assignment.named(row)))
        yield f"{printable(member):<{width}}  {len(row):>5}  {shown}".rstrip()
    if held_count and answer.moves:
        yield ""
        yield from move_lines(answer.moves)
    yield ""
    yield from figure_lines(answer.measures, held_count)


def move_lines(moves: tuple[Move, ...]) -> Iterator[str]:
    """Yield a line for each move, the first of many."""
    for move in moves[:MOVES_SHOWN_MAX]:
        before, after = (printable(one) if one else "nobody" for one in (move.before, move.after))
        yield f"{move.partition}: {before} -> {after}, {move.why.value}"
    if len(moves) > MOVES_SHOWN_MAX:
        yield f"and {len(moves) - MOVES_SHOWN_MAX} more; --json shows all"


def figure_lines(figures: Measures | None, held_count: int) -> Iterator[str]:
    """Yield the measures as lines of text."""
    if figures is None:
        yield "the best achievable is not computed for groups this large"
        return
    yield (
        f"sizes {figures.size_min} to {figures.size_max}, best {figures.best_size_min} to {figures.best_size_max}; "
        f"differences over all pairs {figures.score}, best {figures.best_score}"
    )
    if held_count:
        kept, most = figures.kept_count, figures.most_kept_count
        yield f"kept {kept} of {held_count}; with the best sizes at most {most} can stay"
    if figures.racked_count:
        yield f"read within the rack {figures.matched_count} of {figures.racked_count}"


def compared_lines(answers: tuple[Answer, ...], held_count: int) -> Iterator[str]:
    """Yield a table with one line per assignor, and the optimum."""
    yield f"{'assignor':<20}{'min':>6}{'max':>6}{'differences':>13}{'kept':>8}{'moved':>8}{'in rack':>9}"
    best = None
    for answer in answers:
        name = printable(answer.assignor)
        if answer.refusal is not None:
            yield f"{name:<20}  Kafka throws {answer.refusal.kafka_class}: {printable(str(answer.refusal))}"
        elif answer.measures is None:
            yield f"{name:<20}  the best achievable is not computed for groups this large"
        else:
            best = figures = answer.measures
            kept, moved = (figures.kept_count, held_count - figures.kept_count) if held_count else ("-", "-")
            matched = figures.matched_count if figures.racked_count else "-"
            sizes = f"{figures.size_min:>6}{figures.size_max:>6}{figures.score:>13}"
            yield f"{name:<20}{sizes}{kept:>8}{moved:>8}{matched:>9}"
    if best is not None:
        kept, moved = (best.most_kept_count, held_count - best.most_kept_count) if held_count else ("-", "-")
        yield f"{'best':<20}{best.best_size_min:>6}{best.best_size_max:>6}{best.best_score:>13}{kept:>8}{moved:>8}"


def _compared_json(answers: tuple[Answer, ...]) -> dict[str, Any]:
    return {"version": 1, "assignors": [_answer_json(answer) for answer in answers]}


def _answer_json(answer: Answer) -> dict[str, Any]:
    if answer.refusal is not None:
        error = {"class": answer.refusal.kafka_class, "message": str(answer.refusal)}
        return {"version": 1, "assignor": answer.assignor, "error": error}
    assert answer.assignment is not None
    group = answer.assignment.group
    rows = zip(group.members, answer.assignment.rows.lists(), strict=True)
    return {
        "version": 1,
        "assignor": answer.assignor,
        "members": [{"member_id": member, "partitions": _runs(answer.assignment.named(row))} for member, row in rows],
        "moves": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "from": move.before,
                "to": move.after,
                "why": move.why.name.lower(),
            }
            for move in answer.moves
        ],
        "measures": None if answer.measures is None else attrs.asdict(answer.measures),
    }


def _runs(partitions: list[TopicPartition]) -> list[dict[str, Any]]:
    """Return the partitions in their order, consecutive ones of one topic as one entry."""
    runs = groupby(partitions, key=lambda one: one.topic)
    return [{"topic": topic, "partitions": [one.partition for one in run]} for topic, run in runs]
