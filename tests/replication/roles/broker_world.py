"""One broker with its disks, its logs and a hosted role: what it was sent, and what it sent.

A log of another topic is refused, a directory that is armed fails, and both are noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from broker.clock import ManualClock
from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.errors import InconsistentTopicIdError
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import Record
from log.storage import MemoryStorage
from log.storage.faults import Fault, FaultKind
from replication.roles.broker_role import BrokerRole
from replication.roles.hosted import BrokerStart, Host
from replication.roles.leader import LeaderRole
from replication.roles.messages import CONTROLLER, Address, HostedMessage, Message, NodeId, RegistrationDue
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof
from replication.rules.partition import AlterPartitionRequest
from replication.rules.switches import CURRENT
from replication.simulation.disks import ArmedStorage
from tests.replication.roles.broker_facts import OWN, Part, Said
from tests.support.drawing import Draws

PARTITION_COUNT: Final = 4
SETTINGS: Final = RoleSettings()
EPOCH: Final = BrokerEpoch(3)


@attrs.frozen
class GuestWrite(HostedMessage):
    """Let the guest append to a partition."""

    partition: int
    records: bytes


class Guest:
    """Note what a hosted role is told, and append what it is asked to."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.led: dict[int, int] = {}
        self.wrote: tuple[ErrorCode, int] | None = None
        self.calls: list[tuple[int, Outbox]] = []
        """When it was told something, and where its own messages shall go."""

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Append what a message asks for."""
        assert isinstance(sender, Address), sender
        self.calls.append((now_ms, out))
        if isinstance(message, GuestWrite):
            told = self.host.append(message.partition, message.records, out)
            self.wrote = (told.error, told.number)

    def on_gained(self, partition: int, leader_epoch: LeaderEpoch, now_ms: TimeMs, out: Outbox) -> None:
        """Note a partition that the broker leads."""
        self.calls.append((now_ms, out))
        self.led[partition] = leader_epoch

    def on_lost(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        """Note a partition that the broker leads no more."""
        self.calls.append((now_ms, out))
        del self.led[partition]


class Disks(ArmedStorage):
    """Two log directories that fail when they are armed, and tell it."""

    failed = ""

    def strikes(self, path: str, kinds: frozenset[FaultKind]) -> FaultKind | None:
        """Return the fault that strikes, and note its directory."""
        struck = super().strikes(path, kinds)
        if struck is not None:
            self.failed = path.partition("/")[0]
        return struck


def record(offset: int, epoch: int, now_ms: int) -> bytes:
    """Return a batch of one record."""
    spec = BatchSpec(base_offset=Offset(offset), partition_leader_epoch=LeaderEpoch(epoch))
    return build_batch(spec, (Record(Offset(offset), TimeMs(now_ms), None, b"x"),))


class World:
    """The broker, the facts about it, and what it said last."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.now_ms = self.sent_ms = 1_000
        self.disks = Disks(MemoryStorage(ManualClock()))
        self.parts = {each: Part(each, is_foreign=draws.is_one_in(6)) for each in range(PARTITION_COUNT)}
        self.logs: dict[int, ReplicaLog] = {}
        self.checkpointed: dict[int, Offset] | None = None
        self.guests: list[Guest] = []
        start = BrokerStart(
            broker=OWN,
            incarnation="0/1",
            proof=StopProof(),
            open_log=self._open_log,
            drop_log=self._drop_log,
            checkpoint=self._checkpoint,
            partitions_beside=self._beside,
            hosted_roles=(self._hosted,),
        )
        self.role = BrokerRole(start, SETTINGS)
        self.out = Outbox()
        self.question = 0
        self.number = 0
        self.pending_before: dict[int, AlterPartitionRequest | None] = {}
        """What the leader of each partition had asked the controller for before the last step."""
        self.dropped: list[int] = []
        self.timers: list[tuple[DurationMs, Message]] = []
        """The timers that are due beside those of what is sent."""
        self.advances = False
        """Whether the high watermark has to be looked at again in this step."""
        self.last: Message = RegistrationDue()

    def _hosted(self, host: Host) -> Guest:
        self.guests.append(Guest(host))
        return self.guests[-1]

    def _checkpoint(self, ends: dict[int, Offset]) -> None:
        self.checkpointed = ends

    def _open_log(self, partition: int) -> ReplicaLog:
        if self.parts[partition].is_foreign:
            raise InconsistentTopicIdError(f"the log of {partition} is of another topic")
        if partition not in self.logs:
            path = f"disk-{partition % 2}/t-{partition}"
            log = PartitionLog.open(self.disks, path, LogConfig(), LastShutdown(clean=True), now_ms=TimeMs(self.now_ms))
            self.logs[partition] = ReplicaLog(log, CURRENT)
        return self.logs[partition]

    def _drop_log(self, partition: int) -> None:
        self.dropped.append(partition)
        log = self.logs.pop(partition, None)
        if log is not None:
            self.disks.remove_directory(log.log.directory)

    def _beside(self, path: str) -> frozenset[int]:
        return frozenset(each for each in self.logs if path.startswith(f"disk-{each % 2}/"))

    def tell(self, message: Message, sender: int = CONTROLLER) -> None:
        """Hand a message to the broker, and keep what it says."""
        self.out, self.last = Outbox(), message
        self.disks.failed, self.dropped, self.timers, self.advances = "", [], [], False
        self.pending_before = {each: self.pending(each) for each in self.parts}
        self.sent_ms = self.now_ms
        self.guests[0].calls.clear()
        self.now_ms += self.draws.number(0, 400) if self.draws.one(range(12)) else 15_000
        self.role.handle(message, Address(NodeId(sender)), TimeMs(self.now_ms), self.out)

    def pending(self, partition: int) -> AlterPartitionRequest | None:
        """Return what the leader of a partition waits for from the controller."""
        role = self.role.roles.get(partition)
        return role.state.pending if isinstance(role, LeaderRole) else None

    def next_number(self) -> int:
        """Return a number that no request has."""
        self.number += 1
        return self.number

    def heartbeat(self) -> Said:
        """Return a heartbeat, which names every partition whose directory has failed."""
        lost = frozenset(each.number for each in self.parts.values() if each.is_lost)
        return Said(CONTROLLER, "BrokerHeartbeat", -1, (OWN, EPOCH, lost))

    def asks_metadata(self) -> Said:
        """Return the question for what is new."""
        return Said(CONTROLLER, "MetadataFetch", -1, (self.question,))

    @contextmanager
    def unreadable(self, part: Part, *, is_so: bool) -> Iterator[None]:
        """Let the directory of a partition fail to read in the block, if it does."""
        if is_so:
            self.disks.arm(Fault(f"disk-{part.number % 2}/*.log", FaultKind.READ_ERROR), lasts=True)
        yield
        if is_so:
            self.disks.disarm()

    def high_watermark(self, part: Part) -> int:
        """Return the high watermark of a partition's log."""
        return self.logs[part.number].log.high_watermark if part.number in self.logs else 0

    def epoch_starts(self, part: Part) -> dict[int, int]:
        """Return where each leader epoch begins in a partition's log."""
        log = self.logs.get(part.number)
        return {} if log is None else {each.epoch: each.start_offset for each in log.state.epochs}
