"""Bounded exhaustive search over the rules of replication: two models, one search, and how findings are told."""

from __future__ import annotations

from replication.explore.elr_model import ElrModel, ElrScope
from replication.explore.search import Model, Outcome, Progress, search, told
from replication.explore.truncation_model import TruncationModel, TruncationScope

__all__ = [
    "ElrModel",
    "ElrScope",
    "Model",
    "Outcome",
    "Progress",
    "TruncationModel",
    "TruncationScope",
    "search",
    "told",
]
