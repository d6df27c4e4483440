"""Turn the groups that kafka-consumer-groups printed into groups to assign, with what was assumed.

What it decides: what the output leaves open. Members subscribe to every topic that their group holds, as subscriptions
are not printed. A topic has as many partitions as a dump of topics says, or else as the greatest number seen says. A
group whose members have epochs is assigned by uniform, the coordinator's default, from its target assignment;
another by range, the default of clients. Each assumption is a note.

Constraints: moves are counted from what members hold now, even while the group is on its way to its target.

Example: members hold orders-0 to orders-5 and the dump has 7 partitions of orders: orders-6 is nobody's so far.

Left out: racks of members; patterns of topics.

Source: ours; ConsumerGroupCommand (4.3.1), group.consumer.assignors and partition.assignment.strategy for the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView
from broker.errors import InputError
from broker.ids import TopicPartition
from placement.consumer.group import Member, Topic
from placement.consumer.group_spec import GENERATION_DEFAULT, GroupSpec, Previous
from placement.formats.group_members import PrintedGroup

CLASSIC_DEFAULT: Final = "range"
CONSUMER_DEFAULT: Final = "uniform"


@attrs.frozen
class PrintedQuestion:
    """Hold one group to assign: `owned` is what its assignor starts from, `held` what its members hold now."""

    name: str
    spec: GroupSpec
    owned: Previous
    held: Previous
    assignor: str
    clients: Mapping[str, str]
    notes: tuple[str, ...]


def topics_of_view(view: ClusterView, *, source: str) -> dict[str, Topic]:
    """Return the topics of a dump by name; raise InputError if it does not list all partitions."""
    if not view.partitions_complete:
        raise InputError("the dump does not list all partitions, so that none can be counted", source=source)
    counts = np.bincount(view.partitions.topic_index, minlength=len(view.topics)).tolist()
    return {
        topic.name: Topic(name=topic.name, partition_count=count, id=topic.topic_id)
        for topic, count in zip(view.topics, counts, strict=True)
    }


def question_of(group: PrintedGroup, known: Mapping[str, Topic] | None, assignor: str | None) -> PrintedQuestion:
    """Return the group to assign; partition counts come from `known`, or from the partitions that members hold."""
    held = {member.member_id: member.held for member in group.members}
    owned = {member.member_id: member.held if member.target is None else member.target for member in group.members}
    seen: dict[str, int] = {}
    for one in (one for rows in (held, owned) for row in rows.values() for one in row):
        seen[one.topic] = max(seen.get(one.topic, 0), one.partition + 1)
    names = sorted(seen)
    topics = [
        known[name] if known is not None and name in known else Topic(name=name, partition_count=seen[name])
        for name in names
    ]
    members = [
        Member(id=member.member_id, topics=tuple(names), instance_id=member.instance_id) for member in group.members
    ]
    default = CONSUMER_DEFAULT if group.has_epochs else CLASSIC_DEFAULT
    return PrintedQuestion(
        group.name,
        GroupSpec(tuple(members), tuple(topics)),
        _previous(owned),
        _previous(held),
        default if assignor is None else assignor,
        {member.member_id: member.client_id for member in group.members},
        _notes(group, seen, known, assignor is None, moving=held != owned),
    )


def _previous(held: dict[str, tuple[TopicPartition, ...]]) -> Previous:
    return Previous(held, dict.fromkeys(held, GENERATION_DEFAULT))


def _notes(
    group: PrintedGroup, seen: Mapping[str, int], known: Mapping[str, Topic] | None, by_default: bool, *, moving: bool
) -> tuple[str, ...]:
    count = len(seen)
    topics = "the 1 topic" if count == 1 else f"all {count} topics"
    notes = [f"every member is taken to subscribe to {topics} of the group, as subscriptions are not printed"]
    if known is None:
        notes.append("partition counts are those seen in the assignment; --topics DUMP gives the real ones")
    else:
        unknown = [name for name in seen if name not in known]
        notes += [
            f"topic {name} is not in the dump; its partitions are those seen in the assignment" for name in unknown
        ]
    if by_default and group.has_epochs:
        notes.append("uniform is the coordinator's default; --assignor server-range is its other assignor")
    elif by_default:
        notes.append("range is the default of clients; --describe --state names the group's, for --assignor")
    if moving:
        notes.append(
            "the group is still on its way from the present to the target assignment, from which Kafka goes on"
        )
    if group.rebalancing:
        notes.append("the group was rebalancing when this was printed")
    return tuple(notes)
