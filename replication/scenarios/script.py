"""A scenario while it is played: its acts strike when they are due, and what must be looked at is written down.

It decides what is noted of a run for a scenario: at each time asked for, what stands in every broker's log and how far
each takes it for committed; every answer that carries an error code, by kind; and in the end, which acknowledged
records the leader no longer has.

Constraints: looks at logs by reading their bytes; changes nothing.

How: an extension of a run (`replication.simulation.run.Extension`): it joins before the cluster begins.

Worked example: after "1 leads without m0", `notes[20_000, 0].logs` is ((0,), ()) and `gone` is (0,).

Left out: what the checkers find, which is part of the run's outcome.

Source: ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, Offset
from broker.units import MIB
from log.batches.in_buffer import batches_in
from replication.checkers import Finding
from replication.retention import RecordsDeleted, identity_of
from replication.roles.messages import (
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    ConsumerFetchResponse,
    ElectLeadersResponse,
    FetchResponse,
    ListOffsetsResponse,
    Message,
    NodeId,
    OffsetsForLeaderEpochResponse,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.produce import Fate
from replication.scenarios.acts import Act, Stage
from replication.scenarios.client import ScriptedClient
from replication.scenarios.disks import PREPARED
from replication.scenarios.reader import PositionReader, Reads
from replication.scenarios.zombie_controller import zombie_controller
from replication.simulation.cluster import Cluster
from replication.zookeeper.messages import Obeyed

DIVERGING = "FetchResponse, diverging"
"""The kind under which answers to fetches are counted that say where the logs part."""


_ANSWERS: Final = (
    ProduceResponse,
    ConsumerFetchResponse,
    OffsetsForLeaderEpochResponse,
    ListOffsetsResponse,
    BrokerHeartbeatResponse,
    ElectLeadersResponse,
    AlterPartitionReassignmentsResponse,
    Obeyed,
    RecordsDeleted,
)


@attrs.frozen
class Note:
    """What was seen of a partition at a time: per broker the values in its log, its high watermark, and its start.

    Watermark and start are -1 for no log.
    """

    logs: tuple[tuple[int, ...], ...]
    highs: tuple[int, ...]
    starts: tuple[int, ...]


class Script:
    """Plays acts and takes notes, at each (time, partition) of `looks`.

    `answers` counts (kind, error), `gone` holds acknowledged values that are lost.
    """

    def __init__(self, acts: Sequence[Act], looks: Iterable[tuple[int, int]]) -> None:
        self._acts = acts
        self._looks = sorted(set(looks))
        self.notes: dict[tuple[int, int], Note] = {}
        self.answers: Counter[tuple[str, ErrorCode]] = Counter()
        self.gone: tuple[int, ...] = ()
        self.shown: tuple[int, ...] = ()
        """What the consumers of the simulation were shown."""
        self._readers: list[PositionReader] = []

    @property
    def seen(self) -> tuple[tuple[int, ...], ...]:
        """What each consumer of the scenario was shown."""
        return tuple(tuple(reader.seen) for reader in self._readers)

    def join(self, cluster: Cluster) -> None:
        """Take part in a run."""
        client = cluster.join(lambda _: ScriptedClient(cluster.history))
        former = cluster.join(lambda _: zombie_controller())
        stage = Stage(cluster, client, former)
        for act in self._acts:
            if isinstance(act, PREPARED):
                act.join(cluster)
            elif isinstance(act, Reads):
                self._readers.append(act.join(cluster))
            cluster.at(act.at_ms, partial(act.strike, stage))
        for at_ms, partition in self._looks:
            cluster.at(at_ms, partial(self._note, cluster, at_ms, partition))
        cluster.watches.append(self._count)

    def missing(self, cluster: Cluster) -> str | None:
        """Return nothing: a scenario ends when its time is over."""
        return None

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Note what is gone; find nothing."""
        state = cluster.controller.image.partitions.get(0)
        leader = NO_LEADER if state is None else state.leader
        held: set[int] = set()
        if leader != NO_LEADER and 0 in cluster.nodes[leader].logs:
            held.update(values_in(cluster.nodes[leader].logs[0]))
        acked = [write for write in cluster.history.writes if write.fate is Fate.ACKED and write.partition == 0]
        self.shown = tuple(seen.value for seen in cluster.history.sightings)
        self.gone = tuple(write.value for write in acked if write.value not in held)
        return ()

    def _note(self, cluster: Cluster, at_ms: int, partition: int) -> None:
        logs = [node.logs.get(partition) for _, node in sorted(cluster.nodes.items())]
        self.notes[at_ms, partition] = Note(
            tuple(() if log is None else tuple(values_in(log)) for log in logs),
            tuple(-1 if log is None else log.log.high_watermark for log in logs),
            tuple(-1 if log is None else log.log.log_start_offset for log in logs),
        )

    def _count(self, _cluster: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
        for _, message in out.sent:
            error = _error_of(message)
            if error is not None:
                self.answers[type(message).__name__, error] += 1
            if isinstance(message, FetchResponse) and message.answer.diverging is not None:
                self.answers[DIVERGING, ErrorCode.NONE] += 1


def values_in(log: ReplicaLog) -> Iterator[int]:
    """Yield the values in a log, in order; of a machine without power, what is left of them."""
    position = log.log.log_start_offset
    while position < log.log.log_end_offset:
        before = position
        for batch in batches_in(log.log.read(position, MIB).records):
            for record in batch.records():
                yield identity_of(record)
            position = Offset(batch.last_offset + 1)
        if position == before:
            return


def _error_of(message: Message) -> ErrorCode | None:
    if isinstance(message, _ANSWERS):
        return message.error
    if isinstance(message, FetchResponse):
        return message.answer.error
    if isinstance(message, AlterPartitionResponse):
        return message.altered.error
    if isinstance(message, BrokerRegistrationResponse):
        return ErrorCode.NONE if message.epoch is not None else ErrorCode.DUPLICATE_BROKER_REGISTRATION
    return None
