"""The quorum of controllers that keeps the metadata log: votes, epochs, and what is committed."""

from __future__ import annotations

from replication.quorum.model import Harm, QuorumModel, QuorumScope
from replication.quorum.voter import Voter, committed_end, fetched, grants_vote, has_majority, is_elected, with_epoch

__all__ = (
    "Harm",
    "QuorumModel",
    "QuorumScope",
    "Voter",
    "committed_end",
    "fetched",
    "grants_vote",
    "has_majority",
    "is_elected",
    "with_epoch",
)
