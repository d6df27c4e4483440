"""Ask assignors about one group; format their answers and the optimum as text and JSON.

Names are other people's data, and printed escaped; what an assignor refuses is an answer too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from broker.entropy import SplitMix64
from broker.errors import RefusedError
from broker.ids import TopicPartition
from broker.releases import NEWEST, Release
from broker.wording import printable
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.group_spec import GroupQuestion
from placement.consumer.measures import Measures, measure
from placement.consumer.moves import Move, moves_of
from placement.consumer.optimum import Optimum, optimum_of
from placement.consumer.registry import load_assignor

MOVES_SHOWN_MAX: Final = 50  # A screen of reasons; --json has all.


@attrs.frozen
class Answer:
    """Hold one assignor's result: an assignment with its measures and moves, or its refusal."""

    assignor: str
    assignment: GroupAssignment | None = None
    measures: Measures | None = None
    moves: tuple[Move, ...] = ()
    refusal: RefusedError | None = None


@attrs.frozen
class _Best:
    """Hold the group with what its members hold, and the best there is for it."""

    holding: Group
    optimum: Optimum | None

    @classmethod
    def of(cls, question: GroupQuestion) -> _Best:
        holding = question.group(question.held)
        return cls(holding, optimum_of(holding))


def answer_all(
    question: GroupQuestion, names: Sequence[str], *, corrected: bool, seed: int, release: Release = NEWEST
) -> tuple[Answer, ...]:
    """Return the result of each assignor; raise UsageError for an unknown name."""
    group = question.group(question.owned)
    assignors = [(name, load_assignor(name, corrected=corrected, release=release)) for name in names]
    answers, best = [], _Best.of(question)
    for name, assignor in assignors:
        try:
            assignment = assignor.assign(group, SplitMix64(seed))
        except RefusedError as refusal:
            answers.append(Answer(name, refusal=refusal))
        else:
            answers.append(answer_of(name, assignment, question, best))
    return tuple(answers)


def answer_of(name: str, assignment: GroupAssignment, question: GroupQuestion, best: _Best | None = None) -> Answer:
    """Return an assignment with its measures, and its moves from what members hold."""
    best = _Best.of(question) if best is None else best
    measures = None if best.optimum is None else measure(assignment, best.optimum, best.holding)
    return Answer(name, assignment, measures, tuple(moves_of(assignment, question.held.held)))


def answer_lines(answer: Answer, question: GroupQuestion) -> Iterator[str]:
    """Yield one result as text: a line for each member, then moves, then measures."""
    if answer.assignment is None:
        return
    group = answer.assignment.group
    titles = [_title(member, question.clients.get(member, "")) for member in group.members]
    width = max([6, *map(len, titles)])
    yield f"{'member':<{width}}  {'count':>5}  partitions"
    for title, row in zip(titles, answer.assignment.rows.lists(), strict=True):
        shown = " ".join(map(str, answer.assignment.named(row)))
        yield f"{title:<{width}}  {len(row):>5}  {shown}".rstrip()
    if question.held_count and answer.moves:
        yield ""
        yield from _move_lines(answer.moves)
    yield ""
    yield from _figure_lines(answer.measures, question.held_count)


def _title(member: str, client: str) -> str:
    """Return a member's id, and its client's id unless that begins the member's, as the classic protocol makes it."""
    known = not client or member.startswith(f"{client}-")
    return printable(member) if known else f"{printable(member)} ({printable(client)})"


def _move_lines(moves: tuple[Move, ...]) -> Iterator[str]:
    """Yield a line for each move, the first of many."""
    for move in moves[:MOVES_SHOWN_MAX]:
        before, after = (printable(one) if one else "nobody" for one in (move.before, move.after))
        yield f"{move.partition}: {before} -> {after}, {move.why.value}"
    if len(moves) > MOVES_SHOWN_MAX:
        yield f"and {len(moves) - MOVES_SHOWN_MAX} more; --json shows all"


def _figure_lines(figures: Measures | None, held_count: int) -> Iterator[str]:
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


def compared_lines(answers: Sequence[Answer], held_count: int) -> Iterator[str]:
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


def compared_json(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the answers of several assignors for programs."""
    return {"version": 1, "assignors": [answer_json(answer) for answer in answers]}


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return one answer for programs, with all moves."""
    if answer.refusal is not None:
        error = {"class": answer.refusal.kafka_class, "message": str(answer.refusal)}
        return {"version": 1, "assignor": answer.assignor, "error": error}
    assert answer.assignment is not None
    assignment = answer.assignment
    return {
        "version": 1,
        "assignor": answer.assignor,
        # In the order of members' records, which the next assignment with --previous starts from.
        "members": [
            {"member_id": member, "partitions": _runs(assignment.of(member))} for member in assignment.group.members
        ],
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


def _runs(partitions: Sequence[TopicPartition]) -> list[dict[str, Any]]:
    """Return the partitions in their order, consecutive ones of one topic as one entry."""
    runs = groupby(partitions, key=lambda one: one.topic)
    return [{"topic": topic, "partitions": [one.partition for one in run]} for topic, run in runs]
