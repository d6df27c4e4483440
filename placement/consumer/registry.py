"""Load assignors by name: Kafka's own, and those of installed packages.

A package offers one by naming a class without arguments under the entry point `brokerside.assignors`; Kafka's names
cannot be taken over. Client and server both have a `range`; the server's is `server-range` here. Every call makes a new
assignor, as some remember what they saw.

    >>> load_assignor("sticky")
    StickyAssignor(corrected=False, max_generation=-1)

Source: names are those of partition.assignment.strategy and group.remote.assignor, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from broker.errors import UsageError
from broker.releases import NEWEST, Release
from placement.consumer.assignment import ConsumerAssignor
from placement.consumer.client_range import RangeAssignor, ServerRangeAssignor
from placement.consumer.round_robin import RoundRobinAssignor
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from placement.consumer.uniform.assignor import UniformAssignor
from placement.placers.registry import load_offered

OLDEST: Final = Release("4.0")
"""The first release of today's assignors."""

ASSIGNOR_GROUP: Final = "brokerside.assignors"
KAFKAS: Final[Mapping[str, Callable[[], ConsumerAssignor]]] = MappingProxyType(
    {
        "range": RangeAssignor,
        "roundrobin": RoundRobinAssignor,
        "sticky": StickyAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
        "uniform": UniformAssignor,
        "server-range": ServerRangeAssignor,
    }
)
CORRECTED: Final[Mapping[str, Callable[[], ConsumerAssignor]]] = MappingProxyType(
    {
        "sticky": lambda: StickyAssignor(corrected=True),
        "cooperative-sticky": lambda: CooperativeStickyAssignor(StickyAssignor(corrected=True)),
    }
)
"""Assignors of which Kafka's has defects, without them."""


def load_assignor(name: str, *, corrected: bool = False, release: Release = NEWEST) -> ConsumerAssignor:
    """Return a new assignor of this name, as of `release`.

    Raises UsageError if the name is unknown or names no assignor, and for a release older than 4.0. With
    `corrected`, one without the defects that Kafka's of this name is known to have; others have none.
    """
    if release < OLDEST:
        raise UsageError(f"the assignors of Kafka {release} are not known; allowed are {OLDEST} to {NEWEST}")
    if corrected and name in CORRECTED:
        return CORRECTED[name]()
    if name in KAFKAS:
        return KAFKAS[name]()
    assignor = load_offered("assignor", name, ASSIGNOR_GROUP, KAFKAS)
    if not isinstance(assignor, ConsumerAssignor):
        raise UsageError(f"assignor {name!r} has no method assign(group, entropy)")
    return assignor
