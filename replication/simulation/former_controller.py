"""Model a replaced controller unaware of its successor, still asked by some brokers.

It knows what the controller knew when it was replaced, and nothing later. It has no metadata to send, and its own
timers do nothing, as all that they would do is to write records.

Source: Kafka metadata QuorumController (ControllerWriteEvent, DeferredEventQueue) and raft KafkaRaftClient, 4.3.1;
KAFKA-14154, KAFKA-15489.
"""

from __future__ import annotations

from copy import deepcopy

from broker.units import TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import Address, AlterPartition, BrokerHeartbeat, Message, MetadataFetchResponse, NodeId
from replication.roles.outbox import Outbox


class FormerController:
    """Run a copy of the controller for the brokers that still ask it.

    With `agrees` they ask it AlterPartition alone, and no quorum refuses what it writes (before KAFKA-14154).
    """

    def __init__(self, controller: ControllerRole, brokers: frozenset[NodeId], *, agrees: bool = False) -> None:
        self._role = deepcopy(controller)
        self._brokers = brokers
        self._agrees = agrees
        self._end = len(self._role.log)
        self.answer_count = 0
        """How many requests it has answered."""

    def takes(self, sender: Address, message: Message) -> bool:
        """Return whether a request goes to this controller."""
        return sender.node in self._brokers and (not self._agrees or isinstance(message, AlterPartition))

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Answer a request that changes nothing; leave any other one without an answer."""
        if not isinstance(message, AlterPartition | BrokerHeartbeat):
            return
        if len(self._role.log) > self._end and not self._agrees:
            return
        answers = Outbox()
        self._role.handle(message, sender, now_ms, answers)
        if len(self._role.log) == self._end or self._agrees:
            # What it wrote is metadata for nobody.
            sent = [each for each in answers.sent if not isinstance(each[1], MetadataFetchResponse)]
            self.answer_count += len(sent)
            out.sent += sent
