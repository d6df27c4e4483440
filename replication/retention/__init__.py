"""What brokers do to logs beside replicating them: retention, compaction, and records deleted by order of a client."""

from __future__ import annotations

from replication.retention.delete_records_client import DeleteRecordsClient
from replication.retention.keyed import identity_of, keyed_record
from replication.retention.log_manager import LogHost, LogManager
from replication.retention.messages import DeleteRecords, DeleteRecordsOrder, DeleteRecordsResponse, RetentionDue
from replication.retention.policy import AutoOffsetReset, Retention

__all__ = (
    "AutoOffsetReset",
    "DeleteRecords",
    "DeleteRecordsClient",
    "DeleteRecordsOrder",
    "DeleteRecordsResponse",
    "LogHost",
    "LogManager",
    "Retention",
    "RetentionDue",
    "identity_of",
    "keyed_record",
)
