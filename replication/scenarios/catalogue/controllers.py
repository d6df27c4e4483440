"""Scenarios of the quorum of controllers: S56, as the shortest history that a search finds.

It decides nothing but what is searched.

Source: each scenario names its own.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from replication.explore import Harm, QuorumModel, QuorumScope
from replication.explore.search import search, told
from replication.scenarios.part_scenario import Fact, PartScenario
from replication.simulation.trace import Tell


def _searched(tell: Tell, scope: QuorumScope) -> tuple[Fact, ...]:
    """Search every history within a scope, and tell the shortest that does harm."""
    model = QuorumModel(scope)
    outcome = search(model)
    for line in told(model, outcome.history):
        tell(line)
    if outcome.fault is not None:
        tell(outcome.fault)
        tell(model.state_text(outcome.history[-1]))
        return (Fact("steps to the harm:", outcome.depth),)
    return (Fact("no harm in any state; they are", outcome.state_count),)


_HOW: Final = (
    "A controller loses its disk, with its vote and a record that it had helped to commit, and comes back under the "
    "same id. Without a word of it, it helps another one to a majority. "
)
_SOURCE: Final = "KAFKA-14077, KIP-853, KIP-856"

CONTROLLERS: Final = (
    PartScenario(
        name="S56",
        title="a controller that has lost its disk",
        how=_HOW + "With KIP-853 a voter is an id and a directory: an empty one is nobody's voter.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(records=0)),
        expected=(Fact("no harm in any state; they are", 18_792),),
    ),
    PartScenario(
        name="S56-before",
        title="a controller that has lost its disk: a committed record is lost",
        how=_HOW,
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(directory_ids=False, harms=(Harm.LOSS,))),
        expected=(Fact("steps to the harm:", 8),),
    ),
    PartScenario(
        name="S56-votes",
        title="a controller that has lost its disk: two leaders in one epoch",
        how="It does not even know whom it voted for, and votes again.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(directory_ids=False, harms=(Harm.TWO_LEADERS,))),
        expected=(Fact("steps to the harm:", 5),),
    ),
)
"""S56."""
