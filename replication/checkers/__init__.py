"""Check invariants, client histories and durability of a run, apart from the model that produced it."""

from __future__ import annotations

from replication.checkers.catalogue import INVARIANTS, Invariant
from replication.checkers.clients import check_history
from replication.checkers.durability import DurabilityReport, LostRecord, account, loss_lines
from replication.checkers.finding import Finding
from replication.checkers.rare import Rare
from replication.checkers.retention_model import is_expired, may_skip
from replication.checkers.retention_report import RetentionReport, check_keys, retention_report
from replication.checkers.retention_steps import RetentionStepChecker
from replication.checkers.steps import StepChecker

__all__ = (
    "INVARIANTS",
    "DurabilityReport",
    "Finding",
    "Invariant",
    "LostRecord",
    "Rare",
    "RetentionReport",
    "RetentionStepChecker",
    "StepChecker",
    "account",
    "check_history",
    "check_keys",
    "is_expired",
    "loss_lines",
    "may_skip",
    "retention_report",
)
