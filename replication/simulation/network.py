"""The network between the nodes: how long a message takes, whether it arrives, and how often.

It decides for each message the times at which it arrives: none if it is lost or the way is cut, two if it is doubled.

Constraints: one draw a message from a stream of its own, whatever becomes of the message, so that a cut made or
healed does not shift the luck of the others. With `is_ordered` a message never overtakes one between the same two
nodes, as on a connection; only what a fault holds back may come late.

Example: with delay_ms_max=4 and no faults a message takes 1 to 4 ms.

Left out: bandwidth.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import attrs

from broker.entropy import RandomSource
from broker.units import TimeMs
from replication.roles.messages import HostedMessage, Message, NodeId
from replication.simulation.options import PER_MILLE, NetworkOptions

_MASK: Final = (1 << 31) - 1


@attrs.define
class Hold:
    """The next messages of a kind, sent before `until_ms`, arrive after it; None for a node is any."""

    message_type: str
    until_ms: TimeMs
    left: int = 2
    sender: NodeId | None = None
    receiver: NodeId | None = None

    def takes(self, sender: NodeId, receiver: NodeId, message: object) -> bool:
        """Whether a message is held back."""
        if not self.left or self.message_type != type(message).__name__:
            return False
        return self.sender in (None, sender) and self.receiver in (None, receiver)


class Network:
    """The ways between nodes, some of them cut, slow or leading astray."""

    def __init__(self, options: NetworkOptions, entropy: RandomSource) -> None:
        self._options = options
        self._draw = entropy.next_int
        self._last: defaultdict[NodeId, dict[NodeId, int]] = defaultdict(dict)
        """When the last message from one node to another arrived or will."""
        self._cuts: dict[tuple[NodeId, NodeId], int] = {}
        self._slow_ms: dict[NodeId, int] = {}
        self._holds: list[Hold] = []
        self._look()

    def _look(self) -> None:
        """Note what a message has to fear, if anything: this is asked once a change and not once a message."""
        options = self._options
        self._loss, self._loss_or_twice = options.loss, options.loss + options.duplicates
        self._late_from = PER_MILLE - options.stragglers
        strays = options.loss or options.duplicates or options.stragglers
        self._is_calm = not (strays or self._cuts or self._slow_ms or self._holds)

    def cut(self, sender: NodeId, receiver: NodeId) -> None:
        """Let nothing through from one node to another; cuts count, and each must be healed."""
        self._cuts[sender, receiver] = self._cuts.get((sender, receiver), 0) + 1
        self._look()

    def heal(self, sender: NodeId, receiver: NodeId) -> None:
        """Take one cut back."""
        left = self._cuts.get((sender, receiver), 0) - 1
        if left > 0:
            self._cuts[sender, receiver] = left
        else:
            self._cuts.pop((sender, receiver), None)
        self._look()

    def slow(self, receiver: NodeId, by_ms: int) -> None:
        """Let messages to a node take longer."""
        self._slow_ms[receiver] = by_ms
        self._look()

    def quicken(self, receiver: NodeId) -> None:
        """Let messages to a node be as quick as to others."""
        self._slow_ms.pop(receiver, None)
        self._look()

    def hold(self, hold: Hold) -> None:
        """Hold messages back."""
        self._holds.append(hold)
        self._look()

    def heal_all(self) -> None:
        """Make everything well: no cuts, no loss, no delays beyond the usual."""
        self._cuts.clear()
        self._slow_ms.clear()
        self._holds.clear()
        self._options = attrs.evolve(self._options, loss=0, duplicates=0, stragglers=0)
        self._look()

    def arrivals(self, sender: NodeId, receiver: NodeId, message: Message, now_ms: int) -> tuple[int, ...]:
        """Return when the message arrives, in ms, at most twice."""
        options = self._options
        drawn = self._draw() & _MASK
        rest, luck = drawn // PER_MILLE, PER_MILLE
        at_ms = now_ms + 1 + rest % options.delay_ms_max
        is_ordered = options.is_ordered
        if not self._is_calm:
            luck = drawn % PER_MILLE
            if luck < self._loss or (self._cuts and (sender, receiver) in self._cuts):
                return ()
            if luck >= self._late_from:
                at_ms += rest % options.straggler_ms_max
            if self._slow_ms:
                at_ms += self._slow_ms.get(receiver, 0)
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
                return max(at_ms, hold.until_ms)
        return at_ms


def two_ways(one: NodeId, others: tuple[NodeId, ...]) -> tuple[tuple[NodeId, NodeId], ...]:
    """Return the ways from a node to others and back."""
    return tuple(way for other in others for way in ((one, other), (other, one)))


def one_way(senders: tuple[NodeId, ...], receivers: tuple[NodeId, ...]) -> tuple[tuple[NodeId, NodeId], ...]:
    """Return the ways from some nodes to others."""
    return tuple((sender, receiver) for sender in senders for receiver in receivers if sender != receiver)
