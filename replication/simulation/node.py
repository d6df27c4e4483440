"""A machine with a disk on which a broker runs, is killed, and comes back.

It decides what is left of a disk after each kind of end: a killed process loses what it had in memory, a machine
without power also the end of its logs that was not flushed, a wiped one everything, and one that stops cleanly
nothing.

Constraints: logs are real ones; what is torn off is cut at any byte, so that each start recovers as Kafka's does.
Nothing below the recovery point is ever lost.

Left out: blocks written out of order (`log.storage.crash` has them), directories that fail on their own.

Source: what Kafka's LogManager does at shutdown and start; KIP-966 for the proof of a clean stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.clock import Clock
from broker.entropy import RandomSource
from broker.ids import BrokerId, Offset
from broker.units import KIB, MIB, SizeBytes, TimeMs
from log.files.metadata_files import PARTITION_METADATA_FILE, read_partition_metadata
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.storage import MemoryStorage, Storage
from replication.roles.broker_role import BrokerRole
from replication.roles.broker_start import BrokerStart
from replication.roles.hosted import HostedRoleMaker
from replication.roles.messages import Address, Life, NodeId
from replication.roles.metadata import MetadataImage
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof, proof_at_stop, proof_while_loading
from replication.rules.partition import UNKNOWN_BROKER_EPOCH
from replication.rules.stray import StoredReplica, is_stray
from replication.simulation.options import WALL_CLOCK_MS
from replication.zookeeper import ZooKeeperBrokerRole

TORN_BYTES_MAX: Final = 4 * KIB
"""How much of a log's end power loss takes at most: what a system has not flushed by itself after some seconds."""

DEFAULT_CONFIG: Final = LogConfig(segment_size_bytes=SizeBytes(MIB), index_interval_bytes=SizeBytes(256))


class Node:
    """One broker's machine. `role` is None while the process is down."""

    def __init__(self, broker: BrokerId, rack: int, role_settings: RoleSettings, clock: Clock) -> None:
        self.broker = broker
        self.rack = rack
        self.address = Address(NodeId(broker), Life(0))
        """Where the present life is reached, or the last one while the process is down."""
        self.role: BrokerRole | None = None
        self.is_paused = False
        self.clock_ahead_ms = 0
        self.lossy_life = Life(-1)
        """The last life whose end took records along."""
        self.hosted_roles: list[HostedRoleMaker] = []
        """Makers of the further roles that each life hosts from its start on."""
        self.log_line: Callable[[str], None] = _discard_line
        """Takes the lines of the process's log."""
        self._role_settings = role_settings
        self._clock = clock
        self.config = DEFAULT_CONFIG
        self.storage: Storage = MemoryStorage(clock)
        self._lost: frozenset[str] = frozenset()
        self._proof = StopProof()
        self._was_clean = True
        self._high_watermarks: dict[int, Offset] = {}
        self.logs: dict[int, ReplicaLog] = {}
        """The logs that the present life has opened, by partition."""
        self.log_configs: dict[int, LogConfig] = {}
        """The configs of the logs that have one of their own, by partition."""
        self._log_start_checkpoint: dict[int, Offset] = {}
        """Where logs begin that begin within a segment, as it was last written down."""
        self._topics: dict[int, str] = {}
        """The name of the topic of each log, by its id."""

    @property
    def life(self) -> Life:
        """How often the process was started."""
        return self.address.life

    @property
    def now_ms(self) -> TimeMs:
        """The time by this machine's clock."""
        return TimeMs(WALL_CLOCK_MS + self._clock.now_ms() + self.clock_ahead_ms)

    def start(self) -> BrokerRole:
        """Start the process and return its role."""
        assert self.role is None, self.broker
        self.address = Address(self.address.node, Life(self.life + 1))
        found = self._proof
        self._proof = proof_while_loading(found, self._role_settings.settings.rules)
        self.logs = {}
        self._lost = frozenset()
        start = BrokerStart(
            broker=self.broker,
            incarnation=f"{self.broker}/{self.life}",
            proof=found,
            open_log=self._open_log,
            drop_log=self._drop_log,
            checkpoint=self._high_watermarks.update,
            partitions_beside=self._partitions_beside,
            drop_strays=self._drop_strays,
            hosted_roles=tuple(self.hosted_roles),
            tell=self.log_line,
            rack=f"rack-{self.rack}",
        )
        self.role = (ZooKeeperBrokerRole if self._role_settings.has_zookeeper else BrokerRole)(
            start, self._role_settings
        )
        return self.role

    @property
    def has_no_disk(self) -> bool:
        """Whether every directory has failed, so that the process has to end."""
        return len(self._lost) == self._role_settings.directory_count

    def kill(self) -> None:
        """End the process; all that was written is still on disk."""
        assert self.role is not None, self.broker
        self.role = None
        self._was_clean = False
        self.is_paused = False

    def stop(self) -> None:
        """Let the process end cleanly: logs closed, high watermarks and the proof written."""
        role = self.role
        assert role is not None, self.broker
        for partition, log in sorted(self.logs.items()):
            self._high_watermarks[partition] = log.log.high_watermark
            log.log.close(now_ms=self.now_ms)
        self.checkpoint_log_starts()
        epoch = UNKNOWN_BROKER_EPOCH if role.epoch is None else role.epoch
        self._proof = proof_at_stop(epoch, logs_recovered=True, rules=self._role_settings.settings.rules)
        self.role = None
        self._was_clean = True

    def checkpoint_log_starts(self) -> None:
        """Write down where logs begin that begin within a segment, as log-start-offset-checkpoint has it."""
        for partition, log in self.logs.items():
            start_offset = log.log.log_start_offset
            if start_offset > log.log.segments[0].base_offset:
                self._log_start_checkpoint[partition] = start_offset
            else:
                self._log_start_checkpoint.pop(partition, None)

    def lose_tails(self, entropy: RandomSource) -> int:
        """Cut each log's last file at a drawn byte above what was flushed; return how many bytes went."""
        assert self.role is None, self.broker
        lost = 0
        for partition, log in sorted(self.logs.items()):
            active = log.log.active_segment
            path = f"{self.directory_of(partition)}/{active.base_offset:020d}.log"
            is_flushed = log.log.recovery_point >= log.log.log_end_offset
            size_bytes = self.storage.size_bytes(path)
            torn = 0 if is_flushed else entropy.next_int_bound(min(size_bytes, TORN_BYTES_MAX) + 1)
            self.storage.open(path).truncate(size_bytes - torn)
            lost += torn
        if lost:
            self.lossy_life = self.life
        return lost

    def wipe(self) -> None:
        """Empty the disk."""
        assert self.role is None, self.broker
        self.storage = MemoryStorage(self._clock)
        self._proof = StopProof()
        self._high_watermarks.clear()
        self._log_start_checkpoint.clear()
        self._was_clean = True
        self.lossy_life = self.life

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
            LastShutdown(clean=self._was_clean, log_start_offset=self._log_start_checkpoint.get(partition, Offset(0))),
            now_ms=self.now_ms,
            topic_id=topic_id_of(partition) if self._role_settings.settings.rules.topic_id_check else None,
        )
        log.update_high_watermark(self._high_watermarks.get(partition, Offset(0)))
        opened = self.logs[partition] = ReplicaLog(log, self._role_settings.settings.rules)
        return opened

    def _partitions_beside(self, path: str) -> frozenset[int]:
        """Note that the directory in which `path` lies has failed, and return the replicas that it held."""
        disk = path.partition("/")[0]
        self._lost |= {disk}
        return frozenset(partition for partition in self.logs if self.directory_of(partition).partition("/")[0] == disk)

    def _drop_log(self, partition: int) -> None:
        """Remove a log that this broker has no part in any more; none is fine."""
        self.logs.pop(partition, None)
        self._high_watermarks.pop(partition, None)
        self._log_start_checkpoint.pop(partition, None)
        if self.storage.is_directory(self.directory_of(partition)):
            self.storage.remove_directory(self.directory_of(partition))

    def directory_of(self, partition: int) -> str:
        """Return the path of a partition's log: its broker's directory, then its own, named by its topic."""
        disk = partition % self._role_settings.directory_count
        return f"disk-{disk}/{self._topics.get(partition, f'topic-{partition}')}"

    def _drop_strays(self, image: MetadataImage) -> None:
        """Remove what lies on the disks and belongs to no partition of this broker."""
        rules = self._role_settings.settings.rules
        for number in range(self._role_settings.directory_count):
            disk = f"disk-{number}"
            for topic in self.storage.list(disk) if self.storage.is_directory(disk) else ():
                path = f"{disk}/{topic}/{PARTITION_METADATA_FILE}"
                found = read_partition_metadata(self.storage, path)
                if found is not None and is_stray(
                    StoredReplica(topic, _partition_of(found.topic_id)),
                    self.broker,
                    image.topics,
                    image.partitions,
                    rules,
                ):
                    self.storage.remove_directory(f"{disk}/{topic}")


def _discard_line(_line: str) -> None:
    pass


def topic_id_of(partition: int) -> str:
    """Return a topic's id as it is written on disk: 16 bytes in base 64, which happen to show its number."""
    return f"{partition:021d}A"


def _partition_of(topic_id: str) -> int:
    return int(topic_id.removesuffix("A"))
