"""Search a quorum of controllers for the shortest history that loses a committed record: S56.

Source: each scenario names its own.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from replication.explore import Harm, QuorumModel, QuorumScope
from replication.explore.search import described, search
from replication.scenarios.component_scenario import ComponentScenario, Fact
from replication.simulation.trace import LineSink


def _searched(on_line: LineSink, scope: QuorumScope) -> tuple[Fact, ...]:
    """Search every history within a scope, print the shortest harmful one, and return its length."""
    model = QuorumModel(scope)
    outcome = search(model)
    for line in described(model, outcome.history):
        on_line(line)
    if outcome.fault is not None:
        on_line(outcome.fault)
        on_line(model.state_text(outcome.history[-1]))
        return (Fact("steps to the fault:", outcome.depth),)
    return (Fact("no fault in any state; states searched:", outcome.state_count),)


_SOURCE: Final = "KAFKA-14077, KIP-853, KIP-856"

CONTROLLERS: Final = (
    ComponentScenario(
        name="S56",
        title="Controller voter comes back with an empty disk",
        how="A controller loses its disk, with its vote and a record that it had helped to commit, and comes back "
        "under the same id. With KIP-853 a voter is an id and a directory id: the empty disk belongs to no voter.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(records=0)),
        expected=(Fact("no fault in any state; states searched:", 18_792),),
    ),
    ComponentScenario(
        name="S56-before",
        title="Controller voter comes back with an empty disk and a committed record is lost",
        how="A controller loses its disk, with its vote and a record that it had helped to commit, and comes back "
        "under the same id. It helps a candidate without the record to a majority.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(directory_ids=False, harms=(Harm.LOSS,))),
        expected=(Fact("steps to the fault:", 8),),
    ),
    ComponentScenario(
        name="S56-votes",
        title="Controller voter comes back with an empty disk and two leaders share an epoch",
        how="The controller has lost the record of its vote and votes again in the same epoch.",
        source=_SOURCE,
        script=partial(_searched, scope=QuorumScope(directory_ids=False, harms=(Harm.TWO_LEADERS,))),
        expected=(Fact("steps to the fault:", 5),),
    ),
)
"""S56."""
