"""Run consumer groups inside the replicated cluster, and alone.

    client/         Model a consumer of each group protocol as a machine without I/O.
    alone/          Run one group and its coordinator without a cluster.

The modules here run groups in the cluster: coordinators on brokers, `__consumer_offsets`, members and checks.
"""

from __future__ import annotations

from replication.groups.checks import GROUP_INVARIANTS
from replication.groups.layout import Layout
from replication.groups.life import GroupLife
from replication.groups.plan import Act, ActKind, GroupsPlan, MemberPlan, with_groups
from replication.groups.tally import Tally

__all__ = (
    "GROUP_INVARIANTS",
    "Act",
    "ActKind",
    "GroupLife",
    "GroupsPlan",
    "Layout",
    "MemberPlan",
    "Tally",
    "with_groups",
)
