"""Assign partitions to consumers exactly as Kafka's assignors do, on columns, and measure an assignment.

Begin with `Group.of(members, topics)` and `load_assignor("sticky").assign(group, entropy)`.
"""

from placement.consumer.assignment import GroupAssignment
from placement.consumer.assignor import ConsumerAssignor
from placement.consumer.client_range import RangeAssignor
from placement.consumer.group import NO_GENERATION, Group, Member, Topic
from placement.consumer.measures import Measures, measure
from placement.consumer.moves import Move, MoveReason, moves_of
from placement.consumer.optimum import Optimum, optimum_of
from placement.consumer.ragged import Ragged
from placement.consumer.registry import load_assignor
from placement.consumer.round_robin import RoundRobinAssignor
from placement.consumer.server_range import ServerRangeAssignor
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from placement.consumer.uniform.assignor import UniformAssignor

__all__ = [
    "NO_GENERATION",
    "ConsumerAssignor",
    "CooperativeStickyAssignor",
    "Group",
    "GroupAssignment",
    "Measures",
    "Member",
    "Move",
    "MoveReason",
    "Optimum",
    "Ragged",
    "RangeAssignor",
    "RoundRobinAssignor",
    "ServerRangeAssignor",
    "StickyAssignor",
    "Topic",
    "UniformAssignor",
    "load_assignor",
    "measure",
    "moves_of",
    "optimum_of",
]
