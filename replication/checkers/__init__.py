"""Check invariants, client histories and durability of a run, apart from the model that produced it.

- catalogue: List the invariants by name: statement, moment of the check, and known causes of violations.
- steps: Check the invariants after every event; this decides which checks run after an event.
- records: Check the metadata log: the invariants of each record after the records before it.
- elections: The setting or rule that allows each election of a leader from outside ISR and ELR.
- moves: Check how reassignments end: completed (I26) or cancelled (I32).
- answers: Check that each refusal of a fetch or a write has its reason, and that none is forgotten (I30).
- orders: Check that what an operator orders takes effect (L14).
- incarnations: Check requests and sessions of brokers against an account of their incarnations (I24, I35).
- followers: Check what each answer makes of a follower's log (I33).
- leaders: Check what a leader makes of its pending change of the ISR (I27).
- restarts: Check what a log is when its broker opens it again (I34).
- producers: Check that a log knows its producers, and accepts what follows (I21).
- replicas: Check replicas: each log by itself, each leader's claims, and all replicas of a partition together.
- clients: Check the history that producers and consumers saw, against itself and against the logs at the end.
- durability: Find the acknowledged records that are lost, and the event that removed each of them.
- reference_log: Keep the committed records of one partition, apart from the model.
- observed_log: Read one replica's log from its bytes, and compare it with the committed records.
- settled: Forget the records on which all replicas in sync have agreed, in runs of days.
- view: Define what the checkers see of a cluster: its nodes and its controller.
- retention_steps: Check the invariants after every event where retention and compaction change logs.
- retention_logs: Check one log under retention and compaction (K1, K2, K5 to K7, and I12 in its form for such logs).
- expiry: Check what retention takes from a log's beginning, and what it leaves there (K9).
- retention_model: Decide which records a replica counts as holding where retention and compaction change logs.
- retention_report: Count what retention and compaction removed, and check what consumers saw of each key.
- rare: Count the rare states of a run: states that many runs together must reach, or they prove little.
"""

from __future__ import annotations

from replication.checkers.catalogue import INVARIANTS, OF_LOSSES, Finding, Invariant
from replication.checkers.clients import check_history
from replication.checkers.durability import DurabilityReport, LostRecord, account, loss_lines
from replication.checkers.rare import Rare
from replication.checkers.retention_model import is_expired, may_skip
from replication.checkers.retention_report import RetentionReport, check_keys, retention_report
from replication.checkers.retention_steps import RetentionStepChecker
from replication.checkers.settled import SettlingStepChecker
from replication.checkers.steps import StepChecker

__all__ = (
    "INVARIANTS",
    "OF_LOSSES",
    "DurabilityReport",
    "Finding",
    "Invariant",
    "LostRecord",
    "Rare",
    "RetentionReport",
    "RetentionStepChecker",
    "SettlingStepChecker",
    "StepChecker",
    "account",
    "check_history",
    "check_keys",
    "is_expired",
    "loss_lines",
    "may_skip",
    "retention_report",
)
