"""Assign partitions to consumers exactly as Kafka's assignors do, on columns, and measure an assignment.

Begin with `Group.of(members, topics)` and `load_assignor("sticky").assign(group, entropy)`.

- group: Hold a consumer group in columns: members, subscriptions, topics, owned partitions.
- assignment: Define the protocol of an assignor, and hold its result in Kafka's order.
- registry: Load assignors by name: Kafka's own, and those of installed packages.
- client_range: Assign ranges as Kafka's two RangeAssignors: of each topic, the first members get the first.
- range_racks: Assign ranges as RangeAssignor does with racks: members prefer partitions with a replica in their rack.
- round_robin: Assign all partitions in order, dealt to the subscribed members in turn, as RoundRobinAssignor.
- sticky/: Implement the sticky and cooperative-sticky assignors of Kafka's client.
- uniform/: Implement the uniform assignor of Kafka's group coordinator.
- invariants: Check the invariants that every assignment must meet, and the bound on sizes of balanced ones.
- measures: Measure an assignment: balance, stickiness and racks, each beside the best possible value.
- optimum: Compute the most even sizes of any assignor, and the most partitions that can stay at these sizes.
- moves: List the moves between a group's former and new assignment, with their reasons.
- group_spec: Read a consumer group and its former assignment from JSON or the output of kafka-consumer-groups.
- printed_groups: Convert the output of kafka-consumer-groups into groups for the assignors, with assumptions.
- described_groups: Put the groups of a cluster together from what kafka-consumer-groups --describe printed.
- answers: Ask assignors about one group, and show their answers as text and JSON.
- steps: Follow a group from what its members hold to an assignment in which nothing moves, step by step.
- cli: Define `brokerside groups assign`: print the assignment that Kafka would make for these subscriptions.
- errors: Define the exceptions of Kafka's assignors as refusals that carry Java's class and message.
- subscribers: Look up each topic's subscribers, and whether all members subscribe to the same topics.
- racks: Look up the racks of each partition's replicas, and whether a member can read within its rack.
- topic_ids: Derive the topic ids that server-side assignors see instead of names.
- ragged: Store rows of different lengths in two arrays, and sort stably by small numbers.
- random_assignor: Assign each partition to a random subscriber: an example of a custom assignor.
- strategies: Provide Hypothesis strategies for consumer groups, and check any assignor in one call.
"""

from placement.consumer.assignment import ConsumerAssignor, GroupAssignment
from placement.consumer.client_range import RangeAssignor, ServerRangeAssignor
from placement.consumer.group import NO_GENERATION, Group, Member, Topic
from placement.consumer.measures import Measures, measure
from placement.consumer.moves import Move, MoveReason, moves_of
from placement.consumer.optimum import Optimum, optimum_of
from placement.consumer.ragged import Ragged
from placement.consumer.registry import load_assignor
from placement.consumer.round_robin import RoundRobinAssignor
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
