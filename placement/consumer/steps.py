"""Follow a group from what its members hold to an assignment in which nothing moves, step by step.

A classic group is assigned again until its members get what they hold; the cooperative assignor gives nobody a
partition that another must give up first (KIP-429). A consumer group (KIP-848) has one target: a member gives up what
is not in it, and takes what no other member holds.

Source: ours; CooperativeStickyAssignor and CurrentAssignmentBuilder, 4.4.0, make each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from broker.releases import NEWEST, Release
from broker.wording import counted
from placement.consumer.answers import Answer, answer_all, answer_json, answer_lines, answer_of
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group_spec import GroupQuestion, Previous
from placement.consumer.ragged import Ragged

STEPS_MAX: Final = 10
"""Cooperative rebalances end after two; an assignor of a package may never end."""
RECONCILED: Final = frozenset({"uniform", "server-range"})
"""The assignors of consumer groups, whose members reconcile with one target."""


@attrs.frozen
class Step:
    """Hold one step: what members held before it, and the answer."""

    question: GroupQuestion
    answer: Answer

    def title(self) -> str:
        """Return what happens in the step, in words."""
        moves = self.answer.moves
        taken = [move for move in moves if move.after is not None]
        given_up = sum(move.before is not None and move.after is None for move in moves)
        if not moves:
            return "nothing moves"
        return f"{counted(given_up, 'partition')} given up, {counted(len(taken), 'partition')} taken"


def steps_of(
    question: GroupQuestion, name: str, *, corrected: bool, seed: int, release: Release = NEWEST
) -> tuple[Step, ...]:
    """Return the steps until nothing moves, at most `STEPS_MAX`; a refusal is the last."""
    steps = list[Step]()
    while len(steps) < STEPS_MAX:
        (answer,) = answer_all(question, [name], corrected=corrected, seed=seed, release=release)
        if steps and answer.assignment is not None and not answer.moves:
            break
        if name in RECONCILED and answer.assignment is not None:
            return tuple(_reconciled(question, answer))
        steps.append(Step(question, answer))
        if answer.assignment is None:
            break
        question = _holding(question, answer.assignment)
    return tuple(steps)


def is_stable(steps: Sequence[Step]) -> bool:
    """Return whether nothing moves after the steps."""
    return len(steps) < STEPS_MAX and steps[-1].answer.assignment is not None


def _holding(question: GroupQuestion, assignment: GroupAssignment) -> GroupQuestion:
    """Return the group whose members hold what they were assigned, in the next generation."""
    held = {member: assignment.of(member) for member in assignment.group.members}
    generation = 1 + max(question.owned.generations.values(), default=0)
    before = Previous(held, dict.fromkeys(held, generation))
    return attrs.evolve(question, owned=before, held=before)


def _reconciled(question: GroupQuestion, target: Answer) -> Iterator[Step]:
    """Yield how members of a consumer group reach their target: those that must first give partitions up."""
    assert target.assignment is not None
    held = question.held.held
    holders = {one: member for member, partitions in held.items() for one in partitions}
    assignment, rows = target.assignment, list[list[int]]()
    members = frozenset(assignment.group.members)
    for member, row in zip(assignment.group.members, assignment.rows.lists(), strict=True):
        named = list(zip(row, assignment.named(row), strict=True))
        gives_up = not set(held.get(member, ())) <= {one for _, one in named}
        rows.append(
            [
                number
                for number, one in named
                if holders.get(one) == member or (holders.get(one) not in members and not gives_up)
            ]
        )
    first = GroupAssignment(assignment.group, Ragged.of(rows))
    if any(len(before) < len(now) for before, now in zip(rows, assignment.rows.lists(), strict=True)):
        yield Step(question, answer_of(target.assignor, first, question))
        question = _holding(question, first)
    yield Step(question, answer_of(target.assignor, assignment, question))


def step_lines(steps: Sequence[Step]) -> Iterator[str]:
    """Yield each step as text, under a heading that says what happens in it."""
    for number, step in enumerate(steps, start=1):
        if step.answer.assignment is not None:
            yield f"step {number}: {step.title()}"
            yield from answer_lines(step.answer, step.question)
            yield ""
    if steps[-1].answer.assignment is not None:
        count = counted(len(steps), "step")
        yield f"nothing moves after {count}" if is_stable(steps) else f"partitions still move after {count}"


def steps_json(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the last answer for programs, with all steps."""
    shown = [{"what": step.title(), **answer_json(step.answer)} for step in steps]
    return answer_json(steps[-1].answer) | {"is_stable": is_stable(steps), "steps": shown}
