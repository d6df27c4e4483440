"""Random histories of a controller: brokers come, stall and go, partitions are changed in every way there is.

How: `tests.kafka.controller_model` runs a history on ours and writes it down for Kafka's controller, which runs all of
it at once. After each step both tell what the asker was answered, and all brokers and partitions; the first step after
which they differ is the difference. A case is one history. A history is made smaller by leaving out steps, and by
taking less in them.

Left out: what `tests.kafka.controller_model` leaves out; the order of records within a step, which is that of Kafka's
hash maps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from broker.releases import Release
from replication.rules.switches import rules_of
from tests.kafka.areas import Area, fewer
from tests.kafka.controller_model import ControllerModel, Step
from tests.kafka.jvm import KafkaJvm

STEP_COUNT_MAX: Final = 60
BROKERS: Final = ((1, 2, 3), (0, 1, 2, 3, 4), (2, 3, 17, 18, 34, 1000))
FAILS: Final = "java.lang.IllegalArgumentException: Replica "
"""How Kafka's builder fails when it would elect a last known leader that is no replica any more; the history ends."""

TOPICS: Final = ("t0", "t1", "t2")


@attrs.frozen
class History:
    """The steps of one history, and whether its cluster has eligible leader replicas."""

    elr: bool
    steps: tuple[Step, ...]


def area(kafka: KafkaJvm) -> Area[History]:
    """Return the area of controller histories."""
    return Area(
        name="controller",
        draw=draw,
        difference=lambda history: difference(kafka, history),
        smaller=smaller,
        answer_count=lambda history: len(history.steps),
    )


def difference(kafka: KafkaJvm, history: History) -> str | None:
    """Return the first step after which ours and Kafka's differ."""
    model, places = replayed(history, kafka.release)
    theirs = kafka.call("controller", elr=history.elr, steps=model.steps)
    for place, ours, their in zip(places, model.answers, theirs, strict=True):
        if their.startswith(FAILS):
            return None
        if ours != their:
            return f"step {place}, {history.steps[place]}:\n  ours:  {ours!r}\n  Kafka: {their!r}"
    return None


def replayed(history: History, release: Release) -> tuple[ControllerModel, list[int]]:
    """Run a history on ours; return the model, and of which step of the history each step taken is."""
    model = ControllerModel(attrs.evolve(rules_of(release), elr=history.elr))
    places = []
    for place, step in enumerate(history.steps):
        count = len(model.steps)
        model.take(step)
        places += [place] * (len(model.steps) - count)
    return model, places


def draw(seed: int, number: int) -> History:
    """Draw a history: all brokers are there at first, and a topic."""
    chance = random.Random(f"{seed}/controller/{number}")
    brokers = chance.choice(BROKERS)
    steps: list[Step] = []
    for broker in brokers[: chance.randrange(2, len(brokers) + 1)]:
        steps += [("register", broker, True, True), ("beat", broker, True, 0, False, False)]
    steps.append(("create", TOPICS[0], _rows(chance, brokers)))
    if chance.random() < 0.7:
        steps.append(("min_isr", chance.choice(("", TOPICS[0])), chance.randrange(1, 4)))
    if chance.random() < 0.3:
        steps.append(("unclean", chance.choice(("", TOPICS[0])), True))
    weights = [each for each, _ in _DRAWS]
    draws = [each for _, each in _DRAWS]
    for one in chance.choices(draws, weights, k=chance.randrange(3, STEP_COUNT_MAX)):
        steps.append(one(chance, brokers))
    return History(chance.random() < 0.6, tuple(steps))


def smaller(history: History) -> Iterator[History]:
    """Yield histories with fewer steps, partitions or replicas."""
    for steps in fewer(history.steps):
        yield attrs.evolve(history, steps=tuple(steps))
    for place, (name, *arguments) in enumerate(history.steps):
        for less in _less(name, arguments):
            yield attrs.evolve(history, steps=(*history.steps[:place], less, *history.steps[place + 1 :]))


def _less(name: str, arguments: list[Any]) -> Iterator[Step]:
    if name == "reassign" and len(arguments[1]) > 1:
        yield from ((name, arguments[0], tuple(row)) for row in fewer(arguments[1]))
    elif name in ("create", "grow"):
        topic, rows = arguments
        if len(rows) > 1:
            yield from ((name, topic, tuple(less)) for less in fewer(rows))
        if len(rows[0]) > 1:
            yield name, topic, tuple(row[:-1] for row in rows)
            yield name, topic, tuple(row[1:] for row in rows)


def _alter(chance: random.Random, brokers: tuple[int, ...]) -> Step:
    ahead = chance.choice(((0, 0),) * 12 + ((0, -1), (0, 1), (-1, 0), (1, 0)))
    members = [each for each in range(1, 7) if chance.random() < 0.6]
    if chance.random() < 0.9:
        members.insert(0, 0)
    chance.shuffle(members)
    modes = tuple(chance.choices((0, 1, 2), (20, 4, 1), k=3))
    sender = 0 if chance.random() < 0.95 else chance.randrange(1, 5)
    place, is_current = chance.randrange(6), chance.random() < 0.97
    return ("alter", place, sender, is_current, ahead, tuple(members), modes, chance.random() < 0.1)


def _beat(chance: random.Random, brokers: tuple[int, ...]) -> Step:
    back = chance.choice((0, 0, 0, 1, 3, -1))
    return ("beat", chance.choice(brokers), chance.random() < 0.97, back, chance.random() < 0.1, chance.random() < 0.2)


_PAUSES: Final = (1, 2_000, 4_500, 8_999, 9_000, 9_001, 20_000)

_DRAWS: Final[tuple[tuple[float, Callable[[random.Random, tuple[int, ...]], Step]], ...]] = (
    (8, lambda chance, of: ("register", chance.choice(of), chance.random() < 0.8, chance.random() < 0.5)),
    (22, _beat),
    (10, lambda chance, of: ("tick", chance.choice(_PAUSES))),
    (24, _alter),
    (6, lambda chance, of: ("elect", chance.randrange(6), chance.random() < 0.6)),
    (10, lambda chance, of: ("reassign", chance.randrange(6), () if chance.random() < 0.25 else _row(chance, of))),
    (3, lambda chance, of: ("create", chance.choice(TOPICS), _rows(chance, of))),
    (2, lambda chance, of: ("grow", chance.choice(TOPICS), _rows(chance, of))),
    (1, lambda chance, of: ("delete", chance.choice(TOPICS))),
    (3, lambda chance, of: ("min_isr", chance.choice(("", *TOPICS)), chance.randrange(4))),
    (2, lambda chance, of: ("unclean", chance.choice(("", *TOPICS)), chance.choice((True, False, None)))),
    (4, lambda chance, of: ("balance",)),
    (0.5, lambda chance, of: ("failover",)),
)
"""How often each step is drawn, and what draws it of the cluster's brokers."""


def _row(chance: random.Random, brokers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(chance.sample(brokers, chance.randrange(1, len(brokers) + 1)))


def _rows(chance: random.Random, brokers: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    count = chance.randrange(1, min(4, len(brokers)) + 1)
    return tuple(tuple(chance.sample(brokers, count)) for _ in range(chance.randrange(1, 4)))
