"""Check the caller's own invariants at every event, and send the caller's own messages.

An invariant is a function of the simulation and the event, called after each event and after the built-in checks; it
may read everything and changes nothing. What it says first is a finding of the run (X); it is not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

import attrs

from broker.errors import UsageError
from broker.units import TimeMs
from replication.checkers import Finding
from replication.roles.messages import Message, NodeId, node_name
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster

if TYPE_CHECKING:
    from replication.simulation.run import Simulation


@attrs.frozen
class Event:
    """Show one event: its time, the node, the message that the node handled, and those that it sent for it.

    `node` is a name such as "broker 1", "the controller" or "client 2000".
    """

    at_ms: TimeMs
    node: str
    message: Message
    sent: tuple[Message, ...]


class OwnInvariant(Protocol):
    """Define an invariant of the caller's own."""

    def __call__(self, simulation: Simulation, event: Event, /) -> str | None:
        """Return None while it holds, and in words what is broken."""
        ...


class OwnInvariants:
    """Ask the caller's own invariants after each event."""

    def __init__(
        self, simulation: Simulation, invariants: Iterable[OwnInvariant], find: Callable[[Finding], None]
    ) -> None:
        self._simulation = simulation
        self._find = find
        self._asked = list(invariants)
        if not all(map(callable, self._asked)):
            raise UsageError(f"invariants are {self._asked}; wanted are functions of a simulation and an event")

    def after(self, cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        """Ask each invariant that has not been broken yet."""
        event = Event(cluster.now_ms, node_name(node), message, tuple(each for _, each in out.sent))
        for invariant in tuple(self._asked):
            try:
                what = invariant(self._simulation, event)
            except Exception as error:  # Of the caller's function, which is named.
                what = f"raised {type(error).__name__}: {' '.join(str(error).split())}"
            if what is not None:
                self._asked.remove(invariant)
                name = getattr(invariant, "__name__", type(invariant).__name__)
                self._find(Finding("X", cluster.now_ms, -1, f"{name}: {what}"))


class OutsideClient:
    """Pass on what answers a request from outside the cluster."""

    def __init__(self, on_answer: Callable[[Message], None]) -> None:
        self._on_answer = on_answer

    def begin(self, out: Outbox) -> None:
        """Wait for answers."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Pass an answer on."""
        self._on_answer(message)
