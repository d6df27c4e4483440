"""Copy one cluster into another as MirrorMaker 2 does: topics, offset syncs, checkpoints, groups and failover costs."""

from __future__ import annotations

from replication.mirror.checkpoints import (
    CheckpointStore,
    is_more_recent,
    new_checkpoints,
    offsets_to_set,
    target_partition,
)
from replication.mirror.checks import Copy, MirrorFinding
from replication.mirror.options import MirrorFault, MirrorOptions, quiet_mirror, swarm_mirror
from replication.mirror.outcome import Failover, MirrorOutcome
from replication.mirror.policy import DefaultPolicy, IdentityPolicy, is_cycle, is_replicated, wanted_partitions
from replication.mirror.process import MirrorSettings
from replication.mirror.records import (
    Checkpoint,
    MirrorHeartbeat,
    OffsetSync,
    read_checkpoint,
    read_heartbeat,
    read_offset_sync,
)
from replication.mirror.run import MirrorRun, run_mirror
from replication.mirror.sync_rule import SyncQueue, SyncState, next_sync
from replication.mirror.sync_store import SyncStore

__all__ = (
    "Checkpoint",
    "CheckpointStore",
    "Copy",
    "DefaultPolicy",
    "Failover",
    "IdentityPolicy",
    "MirrorFault",
    "MirrorFinding",
    "MirrorHeartbeat",
    "MirrorOptions",
    "MirrorOutcome",
    "MirrorRun",
    "MirrorSettings",
    "OffsetSync",
    "SyncQueue",
    "SyncState",
    "SyncStore",
    "is_cycle",
    "is_more_recent",
    "is_replicated",
    "new_checkpoints",
    "next_sync",
    "offsets_to_set",
    "quiet_mirror",
    "read_checkpoint",
    "read_heartbeat",
    "read_offset_sync",
    "run_mirror",
    "swarm_mirror",
    "target_partition",
    "wanted_partitions",
)
