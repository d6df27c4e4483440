"""Run consumer groups: consumers as machines, one group alone, and groups in the replicated cluster.

client/               Model a consumer of each group protocol as a machine without I/O.
layout                Map topics and groups to the cluster's numbered partitions.
commits               Check that some order of the commits explains each committed offset that members were shown.
withheld              Note partitions that a cooperative rebalance leaves unassigned (L8).
common/               Share events, coordinator settings, stored records, checks and counts.
unreported            Note partitions that static members own and have not reported (G2).
connection_messages   Define the messages between group members and the coordinators on brokers, and their timers.
held                  Hold back a coordinator's response until the records before it are committed.
offsets_log           Write and read the log of a partition of `__consumer_offsets`.
plan                  Draw the members of a run's groups, and the events of each member, from the run's seed.
connections           Keep both ends of the connections between members and brokers.
fetching              Fetch for a group's member from the leaders of its partitions, ahead of its polls.
shard                 Coordinate the groups of one partition of `__consumer_offsets`, on the broker that leads it.
member                Run a member in the cluster: its consumer, connections, fetches and plan.
hosted_coordinator    Host the group coordinator on a broker: a shard per partition it leads.
checker               Check groups in the cluster after every event: G1 to G9, and that a group skips no record.
extension             Put groups into a run of the cluster: coordinators, members, checks.
alone/                Run one group on a cluster of one broker, and count what its rebalances cost.
cli                   Run `brokerside groups assign|herd|simulate`, the commands about consumer groups.
"""

from __future__ import annotations

from replication.groups.common.counts import GroupCounts
from replication.groups.common.events import Event, EventKind
from replication.groups.common.invariants import GROUP_INVARIANTS
from replication.groups.extension import GroupsExtension
from replication.groups.layout import Layout
from replication.groups.plan import GroupsPlan, MemberPlan, with_groups

__all__ = (
    "GROUP_INVARIANTS",
    "Event",
    "EventKind",
    "GroupCounts",
    "GroupsExtension",
    "GroupsPlan",
    "Layout",
    "MemberPlan",
    "with_groups",
)
