"""Run consumer groups: consumers as machines, one group alone, and groups in the replicated cluster.

client/               Model a consumer of each group protocol as a machine without I/O.
plan                  Lay out topics and groups, and draw the members of a run's groups and the events of each.
history               Count the consumers' work, and check that some order of the commits explains what members saw.
invariants            Define G1 to G10 and GS as functions of a coordinator and its clients.
accounts              Check a coordinator's responses against an account of generations, members and sessions.
connections           Define the messages between members and coordinators, and keep both ends of their connections.
offsets_log           Write and read the log of a partition of `__consumer_offsets`.
fetching              Fetch for a group's member from the leaders of its partitions, ahead of its polls.
shard                 Coordinate the groups of one partition of `__consumer_offsets`, on the broker that leads it.
member                Run a member in the cluster: its consumer, connections, fetches and plan.
hosted_coordinator    Host the group coordinator on a broker: a shard per partition it leads.
checker               Check groups in the cluster after every event: G1 to G13, and that a group skips no record.
extension             Put groups into a run of the cluster: coordinators, members, checks.
alone/                Run one group on a cluster of one broker, and count what its rebalances cost.
cli                   Run `brokerside groups assign|herd|simulate`, the commands about consumer groups.
"""

from __future__ import annotations

from replication.groups.extension import GroupsExtension
from replication.groups.history import GroupCounts
from replication.groups.invariants import GROUP_INVARIANTS
from replication.groups.plan import Event, EventKind, GroupsPlan, Layout, MemberPlan, with_groups

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
