"""Copy one cluster into another as MirrorMaker 2 does: topics, offset syncs, checkpoints, groups and failover costs.

- policy: Decide which topics are mirrored, and name them on the target.
- records: Encode and decode MirrorMaker's own records: offset syncs and checkpoints.
- syncs: Decide when MirrorMaker emits an offset sync, and translate offsets of the source by the syncs.
- checkpoints: Decide which checkpoints MirrorMaker emits and which group offsets it sets on the target.
- cluster: Reach the partitions of one simulated cluster: read what is committed, write with acks=all, create.
- process: Run MirrorMaker's process between two clusters: its connectors, and the state that it loses when it dies.
- checks: Check a copy against its source after both clusters have healed, and compute the cost of a failover.
- run: Run two clusters and a mirror on one clock, from the seed to the verdict.
- cli: Define the command `mirror`: copy one simulated cluster into another under faults and report the result.
"""

from __future__ import annotations

from replication.mirror.run import MirrorOptions, MirrorOutcome, run_mirror, with_failures, without_failures
from replication.mirror.syncs import SyncStore

__all__ = (
    "MirrorOptions",
    "MirrorOutcome",
    "SyncStore",
    "run_mirror",
    "with_failures",
    "without_failures",
)
