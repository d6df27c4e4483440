"""Decide when a message between nodes arrives, whether it arrives, and how often.

Each message takes one draw from the network's own stream, whatever happens to it, so that a cut does not change the
fate of other messages. With `is_ordered` a message never overtakes one between the same two nodes, as on a connection;
only held messages may be late.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import attrs

from broker.entropy import RandomSource
from broker.units import TimeMs
from replication.roles.messages import ConsumerFetch, Fetch, FetchResponse, HostedMessage, Message, NodeId, Produce
from replication.simulation.options import PER_MILLE, NetworkOptions

_MASK: Final = (1 << 31) - 1
ANYONE: Final = NodeId(-2)
"""Stands for every node at an end of a cut."""
DISK_MESSAGES: Final = (Produce, Fetch, FetchResponse, ConsumerFetch)
"""The messages that a broker reads or writes its logs for."""


@attrs.define
class Hold:
    """Hold the next messages of a type, sent before `until_ms`, until then; None as a node matches any."""

    message_type: str
    until_ms: TimeMs
    left: int = 2
    sender: NodeId | None = None
    receiver: NodeId | None = None

    def takes(self, sender: NodeId, receiver: NodeId, message: object) -> bool:
        """Return whether a message is held."""
        if not self.left or self.message_type != type(message).__name__:
            return False
        return self.sender in (None, sender) and self.receiver in (None, receiver)


class Network:
    """Hold the state of the links between nodes: cut, slow, or with held messages."""

    def __init__(self, options: NetworkOptions, entropy: RandomSource) -> None:
        self._options = options
        self._draw = entropy.next_int
        self._last: defaultdict[NodeId, dict[NodeId, int]] = defaultdict(dict)
        """When the last message from one node to another arrived or will arrive."""
        self._cuts: dict[tuple[NodeId, NodeId], int] = {}
        self._slow_ms: dict[NodeId, int] = {}
        self._slow_disk_ms: dict[NodeId, int] = {}
        self._holds: list[Hold] = []
        self.held_until_ms = 0
        """When the last message arrives that was ever held; this may be after `heal_all`."""
        self._look()

    def _look(self) -> None:
        """Cache what can happen to a message; done at each change of the network instead of at each message."""
        options = self._options
        self._loss, self._loss_or_twice = options.loss, options.loss + options.duplicates
        self._late_from = PER_MILLE - options.stragglers
        strays = options.loss or options.duplicates or options.stragglers
        self._is_calm = not (strays or self._cuts or self._slow_ms or self._slow_disk_ms or self._holds)

    def cut(self, sender: NodeId, receiver: NodeId) -> None:
        """Drop all messages from one node to another; cuts count, and each must be healed.

        Either may be `ANYONE`, also a client that connects while the cut lasts.
        """
        self._cuts[sender, receiver] = self._cuts.get((sender, receiver), 0) + 1
        self._look()

    def heal(self, sender: NodeId, receiver: NodeId) -> None:
        """Undo one cut."""
        left = self._cuts.get((sender, receiver), 0) - 1
        if left > 0:
            self._cuts[sender, receiver] = left
        else:
            self._cuts.pop((sender, receiver), None)
        self._look()

    def is_clear(self, one: NodeId, other: NodeId) -> bool:
        """Return whether two nodes hear each other: no cut and no delay between them, and no message held anywhere."""
        if self._is_cut(one, other) or self._is_cut(other, one) or self._holds:
            return False
        return not {one, other} & (self._slow_ms.keys() | self._slow_disk_ms.keys())

    def _is_cut(self, sender: NodeId, receiver: NodeId) -> bool:
        cuts = self._cuts
        return (sender, receiver) in cuts or (sender, ANYONE) in cuts or (ANYONE, receiver) in cuts

    def slow(self, receiver: NodeId, by_ms: int) -> None:
        """Add `by_ms` to the delay of messages to a node."""
        self._slow_ms[receiver] = by_ms
        self._look()

    def quicken(self, receiver: NodeId) -> None:
        """Remove the extra delay of messages to a node."""
        self._slow_ms.pop(receiver, None)
        self._look()

    def slow_disk(self, receiver: NodeId, by_ms: int) -> None:
        """Add `by_ms` to the delay of messages that a node reads or writes its logs for."""
        self._slow_disk_ms[receiver] = by_ms
        self._look()

    def quicken_disk(self, receiver: NodeId) -> None:
        """Remove the extra delay of a node's disk."""
        self._slow_disk_ms.pop(receiver, None)
        self._look()

    def hold(self, hold: Hold) -> None:
        """Hold messages."""
        self._holds.append(hold)
        self._look()

    def heal_all(self) -> None:
        """Undo all cuts, holds and delays, and stop losing, duplicating and delaying messages."""
        self._cuts.clear()
        self._slow_ms.clear()
        self._slow_disk_ms.clear()
        self._holds.clear()
        self._options = attrs.evolve(self._options, loss=0, duplicates=0, stragglers=0)
        self._look()

    def arrivals(self, sender: NodeId, receiver: NodeId, message: Message, now_ms: int) -> tuple[int, ...]:
        """Return the arrival times of a message in ms: none, one or two."""
        options = self._options
        drawn = self._draw() & _MASK
        rest, luck = drawn // PER_MILLE, PER_MILLE
        at_ms = now_ms + 1 + rest % options.delay_ms_max
        is_ordered = options.is_ordered
        if not self._is_calm:
            luck = drawn % PER_MILLE
            if luck < self._loss or (self._cuts and self._is_cut(sender, receiver)):
                return ()
            if luck >= self._late_from:
                at_ms += rest % options.straggler_ms_max
            if self._slow_ms:
                at_ms += self._slow_ms.get(receiver, 0)
            if self._slow_disk_ms and isinstance(message, DISK_MESSAGES):
                at_ms += self._slow_disk_ms.get(receiver, 0)
            if self._holds:
                at_ms = self._held(sender, receiver, message, now_ms, at_ms)
                is_ordered = False
        # What hosted roles and their clients say goes over one connection, however bad the network is.
        if is_ordered or isinstance(message, HostedMessage):
            last = self._last[sender]
            if receiver in last and at_ms < last[receiver]:
                at_ms = last[receiver]
            last[receiver] = at_ms
        if luck < self._loss_or_twice:
            return (at_ms, at_ms + 1 + rest % options.straggler_ms_max)
        return (at_ms,)

    def _held(self, sender: NodeId, receiver: NodeId, message: Message, now_ms: int, at_ms: int) -> int:
        holding = [hold for hold in self._holds if hold.left and now_ms < hold.until_ms]
        if len(holding) < len(self._holds):
            self._holds = holding
            self._look()
        for hold in self._holds:
            if hold.takes(sender, receiver, message):
                hold.left -= 1
                self.held_until_ms = max(self.held_until_ms, at_ms, hold.until_ms)
                return max(at_ms, hold.until_ms)
        return at_ms


def two_ways(one: NodeId, others: tuple[NodeId, ...]) -> tuple[tuple[NodeId, NodeId], ...]:
    """Return the links from a node to others and back."""
    return tuple(way for other in others for way in ((one, other), (other, one)))


def one_way(senders: tuple[NodeId, ...], receivers: tuple[NodeId, ...]) -> tuple[tuple[NodeId, NodeId], ...]:
    """Return the links from each sender to each receiver."""
    return tuple((sender, receiver) for sender in senders for receiver in receivers if sender != receiver)
