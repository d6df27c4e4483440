"""What brokers do to logs beside replicating them: retention, compaction, and records deleted by order of a client."""

from __future__ import annotations

from replication.upkeep.deleter import Deleter
from replication.upkeep.keeper import Keeper, Machine
from replication.upkeep.keyed import identity_of, keyed_record
from replication.upkeep.messages import DeleteRecords, DeletionOrder, RecordsDeleted, UpkeepDue
from replication.upkeep.policy import Reset, Upkeep

__all__ = (
    "DeleteRecords",
    "Deleter",
    "DeletionOrder",
    "Keeper",
    "Machine",
    "RecordsDeleted",
    "Reset",
    "Upkeep",
    "UpkeepDue",
    "identity_of",
    "keyed_record",
)
