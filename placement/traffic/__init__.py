"""Count the cross-zone bytes of produce, replication and consume, the least possible, and possible savings.

Begin with `ZonedPartitions.of(view)`, `group_traffic(partitions, consumers, assignor)` and `changes_of`.

- zones: Hold the zone of every replica and leader of a cluster, and the bytes that each partition takes.
- consumers: Turn members and their subscriptions into a group that Kafka's assignors assign, or draw such groups.
- crossing: Count the partitions and bytes of each flow that cross zones.
- group_traffic: Count a group's cross-zone fetches with the current and other assignors, and the least possible.
- savings: Compute what fetching from the closest replica (KIP-392), or another assignor, saves.
"""

from placement.traffic.consumers import Consumers, GroupPlan, sample_groups
from placement.traffic.crossing import PRICE_PER_GIB, Crossing, cost_of
from placement.traffic.group_traffic import GroupTraffic, group_traffic
from placement.traffic.savings import Change, changes_of
from placement.traffic.zones import ZonedPartitions

__all__ = [
    "PRICE_PER_GIB",
    "Change",
    "Consumers",
    "Crossing",
    "GroupPlan",
    "GroupTraffic",
    "ZonedPartitions",
    "changes_of",
    "cost_of",
    "group_traffic",
    "sample_groups",
]
