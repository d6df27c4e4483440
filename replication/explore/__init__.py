"""Search every history of a small cluster within bounds: three models, one search, one command.

- search: Search every state that a model can reach, breadth first, and find the shortest history to a violation.
- truncation_model: Model 1: check that diverging logs become equal again without the loss of a committed record.
- truncation_steps: Compute the steps of Model 1 by the rules of replication: one pure function for each kind of step.
- elr_model: Model 2: check that every leader has all committed records when brokers are fenced and logs lose ends.
- elr_steps: Compute the steps of Model 2 by the rules of replication: one pure function for each kind of step.
- quorum_model: Model 3: check that no committed metadata record is lost when voters of the KRaft quorum fail.
- cli: Define the command `explore`: search all histories within bounds for one that breaks the rules of replication.
- tiny_log: Represent a log as a tuple of records, and states as small numbers.
"""

from __future__ import annotations

from replication.explore.elr_model import ElrModel, ElrScope
from replication.explore.quorum_model import QuorumModel, QuorumScope, Violation
from replication.explore.search import Model, Outcome, Progress, described, search
from replication.explore.truncation_model import TruncationModel, TruncationScope

__all__ = (
    "ElrModel",
    "ElrScope",
    "Model",
    "Outcome",
    "Progress",
    "QuorumModel",
    "QuorumScope",
    "TruncationModel",
    "TruncationScope",
    "Violation",
    "described",
    "search",
)
