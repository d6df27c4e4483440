"""Model a machine with a disk on which a broker's process runs, dies and starts again.

The logs are real ones; the end of a file is torn off at any byte, so that each start recovers as Kafka does. No byte
below the recovery point is ever lost.

Source: Kafka's LogManager at shutdown and start; KIP-966 for the clean shutdown file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from broker.clock import Clock
from broker.entropy import RandomSource
from broker.ids import BrokerEpoch, BrokerId, Offset
from broker.units import KIB, MIB, SizeBytes, TimeMs
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.storage import MemoryStorage, Storage
from log.storage.metadata_files import PARTITION_METADATA_FILE, read_partition_metadata
from replication.roles.broker_role import BrokerRole
from replication.roles.hosted import BrokerStart, HostedRoleMaker
from replication.roles.messages import Address, Incarnation, NodeId
from replication.roles.metadata import MetadataImage
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof, StoredReplica, is_stray, proof_at_stop, proof_while_loading
from replication.rules.partition import UNKNOWN_BROKER_EPOCH
from replication.zookeeper import ZooKeeperBrokerRole

TORN_BYTES_MAX: Final = 4 * KIB
"""The most bytes that a power loss takes from a log's end: what the system has not flushed after some seconds."""

DEFAULT_CONFIG: Final = LogConfig(segment_size_bytes=SizeBytes(MIB), index_interval_bytes=SizeBytes(256))
_SMALL_INDEX_BYTES: Final = SizeBytes(4 * KIB)
"""The size of a small segment's indexes; Kafka's default would reserve 10 MiB for each."""


def with_small_segments(config: LogConfig, segment_bytes: SizeBytes) -> LogConfig:
    """Return a log's config with segments so small that runs roll many."""
    return attrs.evolve(config, segment_size_bytes=segment_bytes, index_size_bytes=_SMALL_INDEX_BYTES)


class Node:
    """Run one broker's process on its machine; `role` is None while the process is down."""

    def __init__(
        self, broker: BrokerId, rack: int, role_settings: RoleSettings, clock: Clock, wall_clock_ms: TimeMs
    ) -> None:
        self.broker = broker
        self.rack = rack
        """The number of the machine's rack."""
        self.rack_name: str | None = None
        """broker.rack, "" for none; made from the number of the rack if it is None."""
        self.address = Address(NodeId(broker), Incarnation(0))
        """The address of the running process, or of the last one while it is down."""
        self.role: BrokerRole | None = None
        self.is_paused = False
        self.clock_ahead_ms = 0
        self.lossy_incarnation = Incarnation(-1)
        """The last run of the process whose end lost records."""
        self.hosted_roles: list[HostedRoleMaker] = []
        """Makers of the further roles that each run of the process hosts."""
        self.log_line: Callable[[str], None] = _discard_line
        """Receives the lines of the process's log."""
        self.on_end: Callable[[], None] = _do_nothing
        """Called when the process has ended."""
        self._role_settings = role_settings
        self._clock = clock
        self._wall_clock_ms = wall_clock_ms
        self.config = DEFAULT_CONFIG
        self.around: Callable[[Storage], Storage] = _as_it_is
        """Wraps the storage of a new disk."""
        self.storage: Storage = MemoryStorage(clock)
        self._lost: frozenset[str] = frozenset()
        self._proof = StopProof()
        self.clean_stops: dict[Incarnation, BrokerEpoch] = {}
        """The broker epoch of each run of the process that ended with a clean stop."""
        self._to_recover: set[int] = set()
        """The logs that have not been opened since a process did not stop cleanly."""
        self._high_watermarks: dict[int, Offset] = {}
        self._recovery_points: dict[int, Offset] = {}
        """What recovery-point-offset-checkpoint says of each log: a clean stop writes it, a truncation lowers it."""
        self.logs: dict[int, ReplicaLog] = {}
        """The logs that the running process has opened, by partition."""
        self.log_configs: dict[int, LogConfig] = {}
        """The configs of logs with their own settings, by partition."""
        self._log_start_checkpoint: dict[int, Offset] = {}
        """The start offsets in log-start-offset-checkpoint, of logs that start within a segment."""
        self._topics: dict[int, str] = {}
        """The name of the topic of each log, by its id."""

    @property
    def incarnation(self) -> Incarnation:
        """Return the number of times the process was started."""
        return self.address.incarnation

    @property
    def now_ms(self) -> TimeMs:
        """Return the time by this machine's clock in ms."""
        return TimeMs(self._wall_clock_ms + self._clock.now_ms() + self.clock_ahead_ms)

    def start(self) -> BrokerRole:
        """Start the process and return its role."""
        assert self.role is None, self.broker
        self.address = Address(self.address.node, Incarnation(self.incarnation + 1))
        found = self._proof
        self._proof = proof_while_loading(found, self._role_settings.settings.rules)
        self.logs = {}
        self._lost = frozenset()
        start = BrokerStart(
            broker=self.broker,
            incarnation=f"{self.broker}/{self.incarnation}",
            proof=found,
            open_log=self._open_log,
            drop_log=self._drop_log,
            checkpoint=self._high_watermarks.update,
            partitions_beside=self._partitions_beside,
            drop_strays=self._drop_strays,
            hosted_roles=tuple(self.hosted_roles),
            rack=f"rack-{self.rack}" if self.rack_name is None else self.rack_name,
        )
        self.role = (ZooKeeperBrokerRole if self._role_settings.has_zookeeper else BrokerRole)(
            start, self._role_settings
        )
        return self.role

    @property
    def has_no_disk(self) -> bool:
        """Return whether every log directory has failed, so that the process must end."""
        return len(self._lost) == self._role_settings.directory_count

    @property
    def has_lost_disk(self) -> bool:
        """Return whether any log directory has failed since the process started."""
        return bool(self._lost)

    def kill(self) -> None:
        """Kill the process; everything written stays on disk."""
        assert self.role is not None, self.broker
        self.role = None
        self._distrust_logs()
        self.is_paused = False
        for partition, log in self.logs.items():
            known = self._recovery_points.get(partition, Offset(0))
            self._recovery_points[partition] = min(known, log.log.recovery_point)
        self.on_end()

    def stop(self) -> None:
        """Stop the process cleanly: close logs, write high watermarks and the clean shutdown file."""
        role = self.role
        assert role is not None, self.broker
        for partition, log in sorted(self.logs.items()):
            self._high_watermarks[partition] = log.log.high_watermark
            log.log.close(now_ms=self.now_ms)
            self._recovery_points[partition] = log.log.recovery_point
        self.checkpoint_log_starts()
        epoch = UNKNOWN_BROKER_EPOCH if role.epoch is None else role.epoch
        # A log directory that has failed gets no clean shutdown file, and without one of them none is believed.
        is_clean = not self._lost
        if not is_clean:
            self._distrust_logs()
        else:
            self.clean_stops[self.incarnation] = epoch
        self._proof = proof_at_stop(epoch, logs_recovered=is_clean, rules=self._role_settings.settings.rules)
        self.role = None
        self.on_end()

    def _distrust_logs(self) -> None:
        """Mark every log on the disk for recovery at its next opening.

        Kafka recovers all at start. Here a log is opened when its broker hears of it, perhaps not before a clean stop,
        and is recovered all the same.
        """
        self._to_recover |= self.logs.keys() | self._recovery_points.keys()

    def checkpoint_log_starts(self) -> None:
        """Write log-start-offset-checkpoint: the start offsets that lie within a segment."""
        for partition, log in self.logs.items():
            start_offset = log.log.log_start_offset
            if start_offset > log.log.segments[0].base_offset:
                self._log_start_checkpoint[partition] = start_offset
            else:
                self._log_start_checkpoint.pop(partition, None)

    def lose_tails(self, entropy: RandomSource) -> int:
        """Cut each log's last file at a random byte above what was flushed; return the number of lost bytes."""
        assert self.role is None, self.broker
        lost = 0
        for partition, log in sorted(self.logs.items()):
            active = log.log.active_segment
            path = f"{self.directory_of(partition)}/{active.base_offset:020d}.log"
            size_bytes = self.storage.size_bytes(path)
            unflushed_bytes = size_bytes - self.flushed_bytes(partition)
            torn = entropy.next_int_bound(min(unflushed_bytes, TORN_BYTES_MAX) + 1) if unflushed_bytes else 0
            self.storage.open(path).truncate(size_bytes - torn)
            lost += torn
        if lost:
            self.lossy_incarnation = self.incarnation
        return lost

    def flushed_bytes(self, partition: int) -> int:
        """Return how many bytes of a log's active segment lie below its recovery point."""
        log = self.logs[partition].log
        if log.recovery_point <= log.active_segment.base_offset:
            return 0
        if log.recovery_point >= log.log_end_offset:
            return log.active_segment.size_bytes
        return log.read(log.recovery_point, 1).start.position

    def wipe(self) -> None:
        """Empty the disk."""
        assert self.role is None, self.broker
        self.storage = self.around(MemoryStorage(self._clock))
        self._proof = StopProof()
        self.clean_stops.clear()
        self._high_watermarks.clear()
        self._recovery_points.clear()
        self._log_start_checkpoint.clear()
        self._to_recover.clear()
        self.lossy_incarnation = self.incarnation

    def _open_log(self, partition: int) -> ReplicaLog:
        known = self.logs.get(partition)
        if known is not None:
            return known
        assert self.role is not None, self.broker
        self._topics[partition] = self.role.image.topics[partition]
        log = PartitionLog.open(
            self.storage,
            self.directory_of(partition),
            self.log_configs.get(partition, self.config),
            LastShutdown(
                clean=partition not in self._to_recover,
                log_start_offset=self._log_start_checkpoint.get(partition, Offset(0)),
                recovery_point=self._recovery_points.get(partition, Offset(0)),
            ),
            now_ms=self.now_ms,
            topic_id=topic_id_of(partition) if self._role_settings.settings.rules.topic_id_check else None,
        )
        log.update_high_watermark(self._high_watermarks.get(partition, Offset(0)))
        self._to_recover.discard(partition)
        opened = self.logs[partition] = ReplicaLog(log, self._role_settings.settings.rules)
        return opened

    def _partitions_beside(self, path: str) -> frozenset[int]:
        """Mark the directory of `path` as failed and return the replicas that it held."""
        disk = path.partition("/")[0]
        self._lost |= {disk}
        return frozenset(partition for partition in self.logs if self.directory_of(partition).partition("/")[0] == disk)

    def _drop_log(self, partition: int) -> None:
        """Delete a log that this broker has no replica of any more, if it exists."""
        self.logs.pop(partition, None)
        self._to_recover.discard(partition)
        self._high_watermarks.pop(partition, None)
        self._recovery_points.pop(partition, None)
        self._log_start_checkpoint.pop(partition, None)
        if self.storage.is_directory(self.directory_of(partition)):
            self.storage.remove_directory(self.directory_of(partition))

    def directory_of(self, partition: int) -> str:
        """Return the path of a partition's log: its log directory, then its own, named by its topic."""
        disk = partition % self._role_settings.directory_count
        return f"disk-{disk}/{self._topics.get(partition, f'topic-{partition}')}"

    def _drop_strays(self, image: MetadataImage) -> None:
        """Delete logs that belong to no partition of this broker."""
        rules = self._role_settings.settings.rules
        for number in range(self._role_settings.directory_count):
            disk = f"disk-{number}"
            for topic in self.storage.list(disk) if self.storage.is_directory(disk) else ():
                path = f"{disk}/{topic}/{PARTITION_METADATA_FILE}"
                found = read_partition_metadata(self.storage, path)
                if found is not None and is_stray(
                    StoredReplica(topic, int(found.topic_id.removesuffix("A"))),
                    self.broker,
                    image.topics,
                    image.partitions,
                    rules,
                ):
                    self.storage.remove_directory(f"{disk}/{topic}")


def _as_it_is(storage: Storage) -> Storage:
    return storage


def _discard_line(_line: str) -> None:
    pass


def _do_nothing() -> None:
    pass


def topic_id_of(partition: int) -> str:
    """Return a topic's id as written on disk: 16 bytes in base 64, which show its number."""
    return f"{partition:021d}A"
