"""Copy one cluster into another as MirrorMaker 2 does: topics, offset syncs, checkpoints, groups and failover costs.

- run: Run two clusters and a mirror on one clock, from the seed to the verdict.
- process: Run MirrorMaker's process between two clusters: its connectors, and the state that it loses when it dies.
- policy: Decide which topics are mirrored, and name them on the target.
- sync_rule: Decide when MirrorMaker emits an offset sync.
- sync_store: Translate offsets of the source into offsets of the target by the offset syncs.
- checkpoints: Decide which checkpoints MirrorMaker emits and which group offsets it sets on the target.
- records: Encode and decode MirrorMaker's own records: offset syncs, checkpoints and heartbeats.
- checks: Check a copy against its source after both clusters have healed, and compute the cost of a failover.
- options: The scenario of a mirrored run: two clusters, the flow between them, and their failures.
- cli: Define the command `mirror`: copy one simulated cluster into another under faults and report the result.
- partition_clients: Read and write single partitions for the mirror's process, over one connection per cluster.
- committed: Read the committed records of a partition from its leader's log.
- layout: Map topics and partitions to the partition numbers of a simulated cluster.
"""

from __future__ import annotations

from replication.mirror.checkpoints import (
    CheckpointStore,
    is_more_recent,
    new_checkpoints,
    offsets_to_set,
    target_partition,
)
from replication.mirror.checks import Copy, Failover, MirrorFinding
from replication.mirror.options import MirrorFault, MirrorOptions, with_failures, without_failures
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
from replication.mirror.run import MirrorOutcome, MirrorRun, run_mirror
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
    "read_checkpoint",
    "read_heartbeat",
    "read_offset_sync",
    "run_mirror",
    "target_partition",
    "wanted_partitions",
    "with_failures",
    "without_failures",
)
