"""Several brokers agreeing, and failing.

Every rule is a pure function of frozen values, and takes the `Rules` of a release: who may lead (`elect`), what a
change of a partition becomes (`change`), how far the records are committed, who is out of sync and why.
`replication.explore` searches every history within bounds; `replication.strategies` serves tests of one's own
policy.
"""

from __future__ import annotations

from replication.rules.election import Ballot, Choice, Elected, Election, elect
from replication.rules.out_of_sync import OutOfSync, Why
from replication.rules.partition import BrokerStatus, FollowerState, LeaderState, LogState, PartitionState
from replication.rules.partition_change import Target, change, target_of
from replication.rules.settings import Moment, Terms
from replication.rules.switches import (
    CURRENT,
    RELEASES,
    SWITCHES,
    Release,
    Rules,
    Switch,
    Truncation,
    rules_of,
    without,
)

__all__ = (
    "CURRENT",
    "RELEASES",
    "SWITCHES",
    "Ballot",
    "BrokerStatus",
    "Choice",
    "Elected",
    "Election",
    "FollowerState",
    "LeaderState",
    "LogState",
    "Moment",
    "OutOfSync",
    "PartitionState",
    "Release",
    "Rules",
    "Switch",
    "Target",
    "Terms",
    "Truncation",
    "Why",
    "change",
    "elect",
    "rules_of",
    "target_of",
    "without",
)
