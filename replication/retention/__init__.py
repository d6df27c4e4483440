"""What brokers do to logs beside replicating them: retention, compaction, and records deleted by order of a client."""

from __future__ import annotations

from replication.retention.deleter import Deleter
from replication.retention.keeper import Keeper, Machine
from replication.retention.keyed import identity_of, keyed_record
from replication.retention.messages import DeleteRecords, DeletionOrder, RecordsDeleted, RetentionDue
from replication.retention.policy import Reset, Retention

__all__ = (
    "DeleteRecords",
    "Deleter",
    "DeletionOrder",
    "Keeper",
    "Machine",
    "RecordsDeleted",
    "Reset",
    "Retention",
    "RetentionDue",
    "identity_of",
    "keyed_record",
)
