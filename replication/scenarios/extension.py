"""Perform a scenario's operations in a run and note the logs and responses that the scenario compares.

It reads the logs' bytes and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs

from broker.error_codes import ErrorCode
from broker.ids import Offset
from broker.units import MIB
from log.batches.in_buffer import batches_in
from replication.checkers import Finding
from replication.retention import identity_of
from replication.roles.messages import BrokerRegistrationResponse, Message, NodeId, error_of
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.produce import Fate
from replication.scenarios.clients import PositionConsumer, ScriptedClient
from replication.scenarios.operations import DiskFault, Operation, ScenarioContext, StartConsumer
from replication.simulation.cluster import Cluster


@attrs.frozen
class LogSnapshot:
    """Hold, by broker, the values in a partition's log, its high watermark and its start; -1 for no log."""

    logs: tuple[tuple[int, ...], ...]
    high_watermarks: tuple[int, ...]
    log_starts: tuple[int, ...]


class ScenarioExtension:
    """Perform operations and note the logs at each (time in ms, partition) of `states`.

    `responses` counts (message class, error code); `lost_values` are the acknowledged values that are lost at the end.
    """

    def __init__(self, operations: Sequence[Operation], states: Iterable[tuple[int, int]]) -> None:
        self._operations = operations
        self._states = sorted(set(states))
        self.snapshots: dict[tuple[int, int], LogSnapshot] = {}
        self.responses: Counter[tuple[str, ErrorCode]] = Counter()
        self.lost_values: tuple[int, ...] = ()
        self._consumers: list[PositionConsumer] = []

    @property
    def read_values(self) -> tuple[tuple[int, ...], ...]:
        """Return the values that each consumer of the scenario read."""
        return tuple(tuple(consumer.read_values) for consumer in self._consumers)

    def join(self, cluster: Cluster) -> None:
        """Add the scenario's clients to the cluster and schedule the operations."""
        client = cluster.join(lambda _: ScriptedClient(cluster.history, cluster.options.wall_clock_ms))
        context = ScenarioContext(cluster, client)
        for operation in self._operations:
            if isinstance(operation, DiskFault):
                operation.join(cluster)
            elif isinstance(operation, StartConsumer):
                self._consumers.append(operation.join(cluster))
            cluster.at(operation.at_ms, partial(operation.perform, context))
        for at_ms, partition in self._states:
            cluster.at(at_ms, partial(self._note, cluster, at_ms, partition))
        cluster.watches.append(self._count)

    def missing(self, cluster: Cluster) -> str | None:
        """Return None: a scenario ends when its time is over."""
        return None

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Note which acknowledged values the leader lacks; return no finding."""
        log = cluster.leader_log(0)
        held = set() if log is None else set(values_in(log))
        acked = [write for write in cluster.history.writes if write.fate is Fate.ACKED and write.partition == 0]
        self.lost_values = tuple(write.value for write in acked if write.value not in held)
        return ()

    def _note(self, cluster: Cluster, at_ms: int, partition: int) -> None:
        logs = [node.logs.get(partition) for _, node in sorted(cluster.nodes.items())]
        self.snapshots[at_ms, partition] = LogSnapshot(
            tuple(() if log is None else tuple(values_in(log)) for log in logs),
            tuple(-1 if log is None else log.log.high_watermark for log in logs),
            tuple(-1 if log is None else log.log.log_start_offset for log in logs),
        )

    def _count(self, _cluster: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
        for _, message in out.sent:
            error = error_of(message)
            if isinstance(message, BrokerRegistrationResponse) and message.epoch is None:
                error = ErrorCode.DUPLICATE_BROKER_REGISTRATION
            if error is not None:
                self.responses[type(message).__name__, error] += 1


def values_in(log: ReplicaLog) -> Iterator[int]:
    """Yield the values in a log, in order; after a power loss only those that are left."""
    position = log.log.log_start_offset
    while position < log.log.log_end_offset:
        before = position
        for batch in batches_in(log.log.read(position, MIB).records):
            for record in batch.records():
                yield identity_of(record)
            position = Offset(batch.last_offset + 1)
        if position == before:
            return
