"""Write to the leaders of quorums as the simulation's idempotent producers write to Kafka's leaders.

What it decides: one write is in flight; without an answer, or at a voter that does not lead, it is sent again, until it
is acknowledged or its time is over. The leader of each partition is remembered.

Source: ours; the times are those of `replication.simulation.clients`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import attrs

from broker.entropy import SplitMix64
from replication.simulation.clients import DELIVERY_MS_MAX, RETRY_MS
from replication.studies.parameters import Parameters
from replication.studies.quorum_machines import Machines
from replication.studies.quorum_voter import NOBODY

BEGIN_MS: Final = 2_000
ANSWER_MS_MAX: Final = 7_000
"""How long a leader has for an answer, as in the simulation: produce_ms_max and answer_ms_max."""


@attrs.define
class Write:
    """Hold one write; `latency_ms` is -1 until it is acknowledged."""

    value: int
    partition: int
    sent_ms: int
    latency_ms: int = -1
    tries: int = 0
    is_over: bool = False


class Quorums(Protocol):
    """Define what a producer sees of the cluster."""

    parameters: Parameters
    machines: Machines
    is_over: bool
    writes: list[Write]

    def produce(self, write: Write, voter: int, answered: Callable[[], None], moved: Callable[[int], None]) -> None:
        """Take a write at a voter."""
        ...


class QuorumProducer:
    """Write values to partitions drawn at random, one after the other."""

    def __init__(self, quorums: Quorums, entropy: SplitMix64) -> None:
        self._quorums = quorums
        self._entropy = entropy
        self._leaders: dict[int, int] = {}

    def begin(self) -> None:
        """Begin after a drawn time."""
        produce_ms = self._quorums.parameters.produce_ms
        self._quorums.machines.at(BEGIN_MS + self._entropy.next_int_bound(produce_ms), self._write)

    def _write(self) -> None:
        quorums = self._quorums
        if not quorums.is_over:
            partition = self._entropy.next_int_bound(quorums.parameters.partitions)
            write = Write(len(quorums.writes), partition, quorums.machines.now_ms)
            quorums.writes.append(write)
            self._try(write)

    def _try(self, write: Write) -> None:
        quorums = self._quorums
        if quorums.machines.now_ms - write.sent_ms > DELIVERY_MS_MAX:
            self._finish(write)
            return
        voter = self._leaders.get(write.partition, NOBODY)
        if voter == NOBODY:
            voter = self._entropy.next_int_bound(quorums.parameters.factor)
        write.tries += 1
        tries = write.tries

        def is_current() -> bool:
            return write.tries == tries and not write.is_over

        def answered() -> None:
            if not write.is_over:
                self._leaders[write.partition] = voter
                write.latency_ms = quorums.machines.now_ms - write.sent_ms
                self._finish(write)

        def moved(leader: int) -> None:
            if is_current():
                self._leaders[write.partition] = leader
                quorums.machines.at(quorums.machines.now_ms + RETRY_MS * (leader == NOBODY), again)

        def again() -> None:
            if is_current():
                self._try(write)

        def unanswered() -> None:
            if is_current():
                self._leaders.pop(write.partition, None)
                self._try(write)

        quorums.machines.send(voter, lambda: quorums.produce(write, voter, answered, moved))
        quorums.machines.at(quorums.machines.now_ms + ANSWER_MS_MAX, unanswered)

    def _finish(self, write: Write) -> None:
        write.is_over = True
        quorums = self._quorums
        quorums.machines.at(
            quorums.machines.now_ms + 1 + self._entropy.next_int_bound(2 * quorums.parameters.produce_ms), self._write
        )
