"""List the questions by name, and read `--ask` and `--assume`.

A question is a row here: its name, the module that defines it as `QUESTION`, and a sentence for help. A name that no
question asked knows is refused in one sentence with the names that there are. The name is that of the question's
table.

Example:
    >>> [one.name for one in asked_of(("durability",), ())]
    ['durability']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

import attrs

from broker.errors import UsageError
from spark_analysis.answers.question import Question

QUESTIONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "availability": (
            "spark_analysis.answers.availability",
            "probability of lost, leaderless and under-min-ISR partitions",
        ),
        "durability": ("spark_analysis.answers.durability", "copysets, scatter width, data losses per year"),
        "movement": ("spark_analysis.answers.movement", "replicas that move as brokers join or leave"),
        "storage": ("spark_analysis.answers.storage", "bytes of topics on brokers"),
        "consumers": ("spark_analysis.answers.consumers", "assignments of each assignor"),
        "traffic": ("spark_analysis.answers.traffic", "traffic between zones, and what would reduce it"),
    }
)
"""Every question by name: the module that defines it, and what it answers."""


@attrs.frozen
class Asked:
    """Name a question that was asked, with the values of its assumptions."""

    name: str
    values: Mapping[str, float]

    @property
    def question(self) -> Question:
        """Load the question."""
        return load_question(self.name)


def load_question(name: str) -> Question:
    """Return the question of this name; raise UsageError for another name."""
    if name not in QUESTIONS:
        raise UsageError(f"there is no question {name!r}; questions are {', '.join(QUESTIONS)}")
    found: Question = import_module(QUESTIONS[name][0]).QUESTION
    return found


def asked_of(names: Sequence[str], assumed: Sequence[str], *, given_groups: bool = False) -> tuple[Asked, ...]:
    """Return the questions of these names, each once, with the assumptions `NAME=VALUE` that they have.

    With `given_groups` nothing is assumed of how to draw groups. Raises UsageError for a name or a value that makes
    no sense, and for groups that no question takes.
    """
    questions = {name: load_question(name) for name in names}
    if assumed and not questions:
        raise UsageError("--assume has no effect without --ask; give both, or neither")
    if given_groups and not any(question.drawn for question in questions.values()):
        raise UsageError("--groups has no effect without --ask consumers or --ask traffic; give both, or neither")
    # Several questions may assume the same: what is idle for the consumers is still used by availability.
    idle = {name: set(question.drawn) if given_groups else set[str]() for name, question in questions.items()}
    known = {
        one.name: one
        for name, question in questions.items()
        for one in question.assumptions
        if one.name not in idle[name]
    }
    given: dict[str, float] = {}
    texts: dict[str, str] = {}
    for each in assumed:
        name, equals, text = each.partition("=")
        if not equals:
            raise UsageError(f"--assume {each}: allowed is NAME=VALUE")
        if name not in known:
            raise UsageError(
                f"--assume {each}: {' and '.join(questions)} assume{'s' if len(questions) == 1 else ''} "
                f"{', '.join(known) or 'nothing'}"
            )
        if name in given:
            raise UsageError(f"--assume {each}: {name} is given already, as {name}={texts[name]}")
        given[name], texts[name] = known[name].checked(text), text

    def given_to(question: Question) -> dict[str, float]:
        return {one.name: given[one.name] for one in question.assumptions if one.name in given}

    return tuple(
        Asked(name, {one: value for one, value in question.values(given_to(question)).items() if one not in idle[name]})
        for name, question in questions.items()
    )
