"""List what differs between the releases of Kafka that this library answers for, 3.9 to 4.4.

Constraints: every place in the code that compares a release has its file in a row, and the other way round; every
switch of replication whose first release is later than 3.9 has its name in one.

Source: the classes, KIPs and issues of each row, read in the sources of 3.9.2, 4.0.1, 4.1.2, 4.2.1 and 4.3.1,
and asked of the classes of 4.4.0.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.releases import Release


@attrs.frozen
class Difference:
    """Describe one difference: first release, source, the file with the rule, and the option to show it."""

    since: Release
    what: str
    source: str
    where: str
    shown_by: str


def _row(since: str, what: str, source: str, where: str, shown_by: str) -> Difference:
    return Difference(Release(since), what, source, where, shown_by)


_RULES: Final = "replication/rules/switches.py"
_PLACED: Final = "`assign --kafka`"
_SIMULATED: Final = "`simulate --kafka`"
_LOG: Final = "`LogConfig(release=…)`, `log compact --kafka`, `log recover --kafka`"
_ASSIGNED: Final = "`groups assign --assignor uniform --kafka`"
_GROUPED: Final = "`groups simulate --kafka`, `simulate --groups --kafka`"

DIFFERENCES: Final[tuple[Difference, ...]] = (
    _row("3.9", "An append of several batches gets an index entry a batch (since 3.9.1 and 4.0.1)",
         "LogSegment.append", "log/log_config.py", f"{_LOG}, `indexes_whole_appends`"),
    _row("4.0", "Today's assignors are known; older ones are refused", "UniformAssignor",
         "placement/consumer/registry.py", _ASSIGNED),
    _row("4.0", "A look-up of an offset answers with the base offset of its batch", "LogSegment.read",
         "log/partition/log_offsets.py", _LOG),
    _row("4.0", "The cleaner writes magic 0 and 1 anew as magic 2, and keeps the last batch of a pass",
         "Cleaner, KIP-724", "log/compaction/cleaner.py", _LOG),
    _row("4.0", "A fenced broker has a session to lose (`fenced_broker_has_session`)", "KAFKA-17793",
         _RULES, _SIMULATED),
    _row("4.0", "A broker that lost the end of its log leaves the ELR (`elr_excludes_unclean`)", "KIP-966",
         _RULES, _SIMULATED),
    _row("4.0", "Metadata records clear the ELR (ClearElrRecord)", "KIP-966", "log/metadata/schemas.py",
         "`log history`"),
    _row("4.0", "Defaults, bounds and names of settings: no limit of future timestamps, 14-byte segments, formats of "
         "messages and ZooKeeper end; groups have settings", "KIP-1030, KIP-724, KIP-848",
         "broker/config/catalog.py", "`config --kafka`"),
    _row("4.1", "The classic placer, AdminUtils, is gone", "AdminUtils", "placement/placers/registry.py", _PLACED),
    _row("4.1", "New clusters keep the ELR (`elr`)", "KIP-966, EligibleLeaderReplicasVersion", _RULES, _SIMULATED),
    _row("4.1", "The last known leader is elected if it is alive (`last_known_leader_alive`)", "KAFKA-19522",
         _RULES, _SIMULATED),
    _row("4.1", "A search for an offset compares base offsets before last offsets",
         "FileRecords.searchForOffsetFromPosition", "log/segments/segment.py", _LOG),
    _row("4.1", "Bounds of segment.bytes, metadata.log.segment.bytes and the quorum's times", "KIP-1030, QuorumConfig",
         "broker/config/catalog.py", "`config --kafka`"),
    _row("4.1", "A partition that a consumer gives back itself is free for it", "CurrentAssignmentBuilder",
         "broker/group/consumer/member.py", _GROUPED),
    _row("4.2", "Lists of settings name each item once; the coordinators choose their linger", "KIP-1161, KAFKA-19826",
         "broker/config/catalog.py", "`config --kafka`"),
    _row("4.2", "A log asks with which version of transactions a marker is written", "ProducerAppendInfo, KIP-890",
         "log/partition/producer_append.py", _LOG),
    _row("4.2", "A changed subscription takes partitions away before the next target; no epoch rises between two "
         "revocations", "CurrentAssignmentBuilder", "broker/group/consumer/member.py", _GROUPED),
    _row("4.2", "A known consumer that joins with epoch 0 is not fenced", "GroupMetadataManager",
         "broker/group/consumer/heartbeats.py", _GROUPED),
    _row("4.2", "ListOffsets with -6 asks for the first offset not yet in remote storage: -1 without one", "KIP-1023",
         "log/partition/reading.py", _LOG),
    _row("4.3", "A marker of the epoch 32767 is taken in any case", "ProducerAppendInfo",
         "log/partition/producer_append.py", _LOG),
    _row("4.3", "A change of directories leaves the ELR as it is (`elr_kept_by_every_change`)",
         "Kafka pull request 20716", _RULES, _SIMULATED),
    _row("4.3", "A reassignment waits for the replicas that it adds alone (`reassignment_ignores_kept`)", "KAFKA-19975",
         "placement/planning/completion.py", "`impact --kafka`, `simulate --kafka`"),
    _row("4.3", "What a plan's impact says of replicas that hold it up", "KAFKA-19975",
         "placement/planning/findings.py", "`impact --kafka`"),
    _row("4.3", "Cordoned brokers get no new replicas where the controller places", "KIP-1066, BrokerHeartbeatManager",
         "placement/placers/usable.py", _PLACED),
    _row("4.3", "Two refusals of the striped placer name cordoned log directories", "KIP-1066, StripedReplicaPlacer",
         "placement/placers/striped.py", _PLACED),
    _row("4.3", "Metadata records name cordoned log directories, from metadata.version 4.3-IV0", "KIP-1066",
         "log/metadata/schemas.py", "`log history`, `report`"),
    _row("4.3", "The share coordinator's snapshots have no largest number of updates between them",
         "ShareCoordinatorConfig", "broker/config/catalog.py", "`config --kafka`"),
    _row("4.3", "Targets of consumer groups are computed at most once in group.consumer.assignment.interval.ms, and "
         "groups begin at epoch 1", "KIP-1263", "broker/group/consumer/target.py", _GROUPED),
    _row("4.3", "A commit of a former epoch is taken for a partition held since then", "KIP-1251",
         "broker/group/consumer/member.py", _GROUPED),
    _row("4.4", "Replica lists by hand and reassignments that name a cordoned broker are refused", "KAFKA-20832",
         "placement/placers/manual.py", "`impact --kafka`"),
    _row("4.4", "The cleaner keeps an empty last batch below the high watermark, no longer that of a pass",
         "Cleaner", "log/compaction/cleaner.py", _LOG),
    _row("4.4", "A metadata record unregisters a controller", "UnregisterControllerRecord", "log/metadata/schemas.py",
         "`log history`"),
)  # fmt: skip
"""Every difference, by release."""


def table() -> str:
    """Return the table as text, a line for each difference: since, what, source and the option that shows it."""
    rows = [(row.since.name, row.what, row.source, row.shown_by.replace("`", "")) for row in DIFFERENCES]
    return "\n".join(f"{since}  {what} ({source}); {shown_by}" for since, what, source, shown_by in rows)
