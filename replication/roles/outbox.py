"""Collect the messages and timers that result from one handled message.

Example: out.send(Address(NodeId(1)), Fetch(...)); out.wake(DurationMs(500), FetchExpired(...)).
"""

from __future__ import annotations

from broker.units import DurationMs
from replication.roles.messages import Address, Message


class Outbox:
    """Hold messages to send and timers to set, in the order in which a role asked for them."""

    __slots__ = ("sent", "woken")

    def __init__(self) -> None:
        self.sent: list[tuple[Address, Message]] = []
        self.woken: list[tuple[DurationMs, Message]] = []

    def send(self, receiver: Address, message: Message) -> None:
        """Send `message` over the network."""
        self.sent.append((receiver, message))

    def wake(self, delay_ms: DurationMs, message: Message) -> None:
        """Hand `message` back to the sender's own incarnation after `delay_ms`."""
        self.woken.append((delay_ms, message))
