"""Run the machines of a quorum: a clock, messages with delays, processes that die and start again.

What it decides: the order of events: by time, and for equal times by the order in which they were scheduled. A message
reaches the process that ran when it was sent, if it still runs; a timer is up to whoever set it.

Source: ours; discrete-event simulation, with the delays of `replication.simulation.network`.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from broker.entropy import SplitMix64
from replication.simulation.options import NetworkOptions

CLIENT: Final = -1
"""The receiver that is always there."""
_DELAY_MS_MAX: Final = NetworkOptions().delay_ms_max


class Machines:
    """Hold the clock, the scheduled actions, and which processes run."""

    def __init__(self, count: int, entropy: SplitMix64) -> None:
        self.count = count
        self.now_ms = 0
        self.is_up = [True] * count
        self.incarnation = [0] * count
        """How often each process has ended."""
        self.message_count = 0
        self._entropy = entropy
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0

    def drawn(self, most: int) -> int:
        """Return a whole number from 0 to below `most`."""
        return self._entropy.next_int_bound(most)

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self._asked += 1
        heappush(self._heap, (at_ms, self._asked, action))

    def send(self, receiver: int, action: Callable[[], None]) -> None:
        """Let a message arrive after a drawn delay."""
        incarnation = CLIENT if receiver == CLIENT else self.incarnation[receiver]

        def arrive() -> None:
            if receiver == CLIENT or (self.is_up[receiver] and self.incarnation[receiver] == incarnation):
                self.message_count += 1
                action()

        self.at(self.now_ms + 1 + self.drawn(_DELAY_MS_MAX), arrive)

    def stop(self, machine: int) -> None:
        """End a process; nothing that was sent to it arrives."""
        self.is_up[machine] = False
        self.incarnation[machine] += 1

    def run_until(self, end_ms: int) -> None:
        """Run all actions up to and including `end_ms`."""
        while self._heap and self._heap[0][0] <= end_ms:
            self.now_ms, _, action = heappop(self._heap)
            action()
