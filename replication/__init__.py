"""Model several brokers that agree and fail: pure rules, the roles that apply them, and simulations that check them.

    rules/          Decide elections, ISR changes, high watermarks and truncation as pure functions.
    roles/          Apply the rules: leader, follower, controller and broker, without I/O.
    zookeeper/      Model the ZooKeeper-era controller and its brokers.
    retention/      Delete and compact records while brokers replicate them.
    explore/        Search every history of a small cluster within bounds.
    checkers/       Check invariants and client histories, apart from the model.
    simulation/     Run a cluster on a virtual clock under faults, checked at every step.
    groups/         Run consumer groups: clients, one group alone, groups inside the cluster.
    mirror/         Copy one cluster into another as MirrorMaker 2 does.
    studies/        Run studies: a grid of settings times seeds, a row a run, a chart.
    testing/        Serve a simulated cluster to real clients, in real time or on virtual time.
    scenarios/      Run named scenarios and compare the outcome with the known one.
    strategies      Generate partitions, elections and faults for Hypothesis tests.
    cli/            Run `brokerside simulate` with its options.

Constraints: `strategies` needs hypothesis, so this root does not import it.

How: every rule takes the `Rules` of a release: `CURRENT`, one of `RELEASES`, or one with a fix off (`without`).
README.md has a lesson, "Break Kafka in five steps", and the reference.
"""

from __future__ import annotations

from replication.rules.election import Ballot, Choice, Elected, Election, elect
from replication.rules.out_of_sync import OutOfSync, Why
from replication.rules.partition import BrokerStatus, FollowerState, LeaderState, LogState, PartitionState
from replication.rules.partition_change import Target, change, target_of
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.switches import (
    CURRENT,
    RELEASES,
    SWITCHES,
    ReleaseDefaults,
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
    "PartitionSettings",
    "PartitionState",
    "ReleaseDefaults",
    "Rules",
    "Switch",
    "Target",
    "Truncation",
    "Why",
    "change",
    "elect",
    "rules_of",
    "target_of",
    "without",
)
