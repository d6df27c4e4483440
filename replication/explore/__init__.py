"""Search every history of a small cluster within bounds: three models, one search, one command."""

from __future__ import annotations

from replication.explore.elr_model import ElrModel, ElrScope
from replication.explore.quorum_model import Harm, QuorumModel, QuorumScope
from replication.explore.search import Model, Outcome, Progress, described, search
from replication.explore.truncation_model import TruncationModel, TruncationScope

__all__ = (
    "ElrModel",
    "ElrScope",
    "Harm",
    "Model",
    "Outcome",
    "Progress",
    "QuorumModel",
    "QuorumScope",
    "TruncationModel",
    "TruncationScope",
    "described",
    "search",
)
