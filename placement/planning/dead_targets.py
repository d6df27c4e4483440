"""Find targets on brokers that are down, for which kafka-reassign-partitions --execute refuses the whole file.

Source: Kafka 4.4.0 ReassignPartitionsCommand.verifyBrokerIds, which knows the live brokers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from broker.cluster import ClusterView
from broker.ids import BrokerId
from broker.liveness import Liveness
from broker.wording import brokers_listed
from placement.planning.reassignment import Reassignment

NAMES_MAX: Final = 5


def down_targets(plan: Reassignment, view: ClusterView | None = None) -> dict[BrokerId, Liveness]:
    """Return the down brokers among a plan's targets, ascending, by `view` or the plan's own list."""
    named = set(np.unique(plan.replicas).tolist())
    view = plan.view if view is None else view
    pairs = zip(view.brokers, view.liveness, strict=True)
    down = {one.id: how for one, how in pairs if how not in (Liveness.ALIVE, Liveness.STOPPING)}
    return {number: how for number, how in down.items() if int(number) in named}


def rollback_refused(plan: Reassignment) -> str:
    """Return why --execute refuses the way back from a plan as things stand; nothing where it takes it."""
    found = down_targets(plan.rollback(plan.view))
    if not found:
        return ""
    return (
        f"rollback.json names {named_down(found)}: --execute refuses the whole file until "
        f"{'it is' if len(found) == 1 else 'they are'} back"
    )


def named_down(found: Mapping[BrokerId, Liveness]) -> str:
    """Return brokers that are down in words, such as "fenced broker 3" or "broker 3 (in no ISR), 5 (fenced)"."""
    if set(found.values()) == {Liveness.FENCED}:
        return f"fenced {brokers_listed([int(number) for number in found])}"
    return brokers_listed((f"{number} ({how.value})" for number, how in found.items()), NAMES_MAX)
