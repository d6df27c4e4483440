"""Delete topics while they are written, and create others of the same name.

A partition's number is its topic's id and is never used twice; `History.successors` says which number has a topic's
name after it. Orders are given again each second while the controller is away, and no more once faults are over: a
topic that is not created again by then is gone for good.

Source: ours; Kafka TopicCommand, KIP-516 for topic ids.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from replication.roles.messages import CONTROLLER, CreateTopic, DeleteTopic
from replication.simulation.cluster import Action, Cluster
from replication.simulation.fault import Fault

_AGAIN_MS: Final = 1_000


class TopicDeletion:
    """Delete topics of a cluster and create them again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._is_over = False
        self._next = cluster.options.partition_count
        self._deleting: set[int] = set()
        self._creating: dict[int, int] = {}
        """The number that each deleted partition's topic is to have, until it is there."""

    def strike(self, fault: Fault) -> None:
        """Delete the topic that has the name of partition `target` now, and create it again `for_ms` later."""
        image, number = self._cluster.controller.image, self._cluster.history.number_of(fault.target)
        if number in image.partitions and number not in self._deleting:
            self._deleting.add(number)
            what = f"the topic of partition {number} is to be deleted, and created again {fault.duration_ms} ms later"
            self._cluster.trace.line(self._cluster.now_ms, what)
            following = CreateTopic(self._next, image.partitions[number].replicas, image.topics[number])
            self._next += 1
            self._delete(number, following, fault.duration_ms)

    def heal(self) -> None:
        """Give no more orders; a topic created by now takes the deleted one's place."""
        self._is_over = True
        for number, successor in self._creating.items():
            if successor in self._cluster.controller.image.partitions:
                self._cluster.history.successors[number] = successor

    def _delete(self, number: int, following: CreateTopic, for_ms: int) -> None:
        cluster = self._cluster
        if self._is_over:
            return
        if number in cluster.controller.image.partitions:
            cluster.deliver(CONTROLLER, DeleteTopic(number))
            self._later(_AGAIN_MS, partial(self._delete, number, following, for_ms))
        else:
            self._creating[number] = following.partition
            self._later(for_ms, partial(self._create, number, following))

    def _create(self, number: int, order: CreateTopic) -> None:
        cluster = self._cluster
        if self._is_over:
            return
        if order.partition in cluster.controller.image.partitions:
            cluster.history.successors[number] = order.partition
            del self._creating[number]
        else:
            cluster.deliver(CONTROLLER, order)
            self._later(_AGAIN_MS, partial(self._create, number, order))

    def _later(self, for_ms: int, action: Action) -> None:
        self._cluster.at(self._cluster.now_ms + for_ms, action)
