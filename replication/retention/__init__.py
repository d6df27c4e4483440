"""Delete and compact records while brokers replicate them: retention, the log cleaner and DeleteRecords."""

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
