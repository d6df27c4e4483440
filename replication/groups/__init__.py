"""Run consumer groups: consumers as machines, one group alone, and groups in the replicated cluster.

    client/         Model a consumer of each group protocol as a machine without I/O.
    common/         Share events, coordinator settings, stored records, checks and counts.
    alone/          Run one group on a cluster of one broker, and count what its rebalances cost.

The modules beside these rooms run groups in the cluster: coordinators on brokers, members as clients, and checks.
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
