"""Define the protocol of an assignor: it takes a group and returns an assignment.

What it decides: what Kafka's eight built-in policies and anybody's own have in common. A policy is a class without
arguments that has `assign`; named under the entry point `brokerside.assignors` it can be chosen by name
(`placement.consumer.registry`), and `placement.consumer.strategies.check_assignor` tests it against the invariants
that every group relies on (`placement.consumer.invariants`). `placement.consumer.random_assignor` is an example.

An assignor may remember what it saw, as Kafka's sticky ones do with the highest generation: one object serves one
group leader's life.

Source: Kafka's ConsumerPartitionAssignor (clients) and PartitionAssignor (group coordinator), 4.0.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from broker.entropy import RandomSource
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group


@runtime_checkable
class ConsumerAssignor(Protocol):
    """Define an assignment policy; Kafka's own never draw from `entropy`, and custom ones draw from nothing else."""

    def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
        """Return the partitions of each member; raise RefusedError where the policy has no answer."""
        ...
