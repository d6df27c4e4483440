"""Convert the output of kafka-consumer-groups into groups for the assignors, and list the assumptions made.

Members subscribe to every topic that their group holds. A topic has as many partitions as a dump of topics says, or
else as the greatest number seen says. A group whose members have epochs is assigned by uniform, from its target
assignment; another by range. Each assumption is a note.

Source: ConsumerGroupCommand (4.3.1), group.consumer.assignors and partition.assignment.strategy for the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView
from broker.errors import InputError
from placement.consumer.group import Member, Topic
from placement.consumer.group_spec import CLASSIC_DEFAULT, GroupQuestion, Previous
from placement.formats.group_tables import GroupTable
from placement.formats.group_text import HEADING, SENTENCE, MemberRow
from placement.formats.parsed import Reject
from placement.formats.printed import is_list_of_names, what_is
from placement.formats.snapshot_groups import is_snapshot_text, read_groups_text

CONSUMER_DEFAULT: Final = "uniform"
_INSTEAD: Final = (
    "which does not say what each member holds; give what kafka-consumer-groups --describe --members --verbose prints"
)


@attrs.frozen(kw_only=True)
class PrintedMembers:
    """Hold the members of each group of one output, in the order printed; `empty` are groups without active members."""

    source: str
    groups: Mapping[str, Sequence[MemberRow]]
    empty: tuple[str, ...]
    rebalancing: frozenset[str]
    rejects: tuple[Reject, ...]

    @property
    def rows_analysed(self) -> int:
        """Return the number of members."""
        return sum(map(len, self.groups.values()))


def is_of_groups(text: str) -> bool:
    """Return whether a text is a snapshot or output of kafka-consumer-groups, with or without the members' assignments.

    >>> is_of_groups("GROUP   CONSUMER-ID   HOST"), is_of_groups('{"members": []}')
    (True, False)
    """
    lines = [line.strip() for line in text.splitlines()]
    is_printed = any(HEADING.match(line) or SENTENCE.match(line) for line in lines)
    return is_printed or is_list_of_names(text) or is_snapshot_text(text)


def read_printed_members(text: str, *, source: str) -> PrintedMembers:
    """Return the members that kafka-consumer-groups --describe --members --verbose printed.

    Raises InputError for another output, or if no row can be used.
    """
    if is_list_of_names(text):
        what = f"this is a list of names, such as kafka-consumer-groups --list prints, {_INSTEAD}"
        raise InputError(what, source=source)
    tables = read_groups_text(text, source=source)
    found: dict[str, list[MemberRow]] = {}
    for row in tables.members:
        if row.held is not None:
            found.setdefault(row.group, []).append(row)
    rejects = tuple(reject for table, reject in tables.rejects if table is GroupTable.MEMBERS)
    others = [row.group for rows in (tables.members, tables.offsets, tables.states) for row in rows]
    if not found and any(group not in tables.empty for group in others):
        raise InputError(f"this is {(what_is(text) or '').split(',')[0]}, {_INSTEAD}", source=source)
    if not found and rejects:
        first = rejects[0]
        raise InputError(f"no member can be used: {first.reason}", source=source, line=first.line, value=first.value)
    return PrintedMembers(
        source=source,
        groups={name: found[name] for name in sorted(found)},
        empty=tuple(sorted(tables.empty - found.keys())),
        rebalancing=tables.rebalancing,
        rejects=rejects,
    )


def topics_of_view(view: ClusterView, *, source: str) -> dict[str, Topic]:
    """Return the topics of a dump by name; raise InputError if it does not list all partitions."""
    if view.wholeness.refusal is not None:
        raise InputError(f"{view.wholeness.refusal}, so that partitions cannot be counted", source=source)
    counts = np.bincount(view.partitions.topic_index, minlength=len(view.topics)).tolist()
    return {
        topic.name: Topic(name=topic.name, partition_count=count, id=topic.topic_id)
        for topic, count in zip(view.topics, counts, strict=True)
    }


def question_of(
    printed: PrintedMembers, name: str, known: Mapping[str, Topic] | None, assignor: str | None
) -> GroupQuestion:
    """Return a group to assign; partition counts come from `known`, or from the partitions that members hold."""
    members = printed.groups[name]
    held = {member.member_id: member.held or () for member in members}
    owned = {one.member_id: held[one.member_id] if one.target is None else one.target for one in members}
    seen: dict[str, int] = {}
    for one in (one for rows in (held, owned) for row in rows.values() for one in row):
        seen[one.topic] = max(seen.get(one.topic, 0), one.partition + 1)
    names = tuple(sorted(seen))
    has_epochs = any(member.target is not None for member in members)
    notes = list(_notes(seen, known))
    if assignor is None and has_epochs:
        notes.append("uniform is the coordinator's default; --assignor server-range is its other assignor")
    elif assignor is None:
        notes.append("range is the default of clients; --describe --state names the group's, for --assignor")
    if held != owned:
        notes.append(
            "the group is still on its way from the present to the target assignment, from which Kafka goes on"
        )
    if name in printed.rebalancing:
        notes.append("the group was rebalancing when this was printed")
    return GroupQuestion(
        name=name,
        members=tuple(Member(id=one.member_id, topics=names, instance_id=one.instance_id) for one in members),
        topics=tuple((known or {}).get(topic, Topic(name=topic, partition_count=seen[topic])) for topic in names),
        owned=Previous.of(owned),
        held=Previous.of(held),
        assignor=assignor or (CONSUMER_DEFAULT if has_epochs else CLASSIC_DEFAULT),
        clients={member.member_id: member.client_id for member in members},
        notes=tuple(notes),
    )


def _notes(seen: Mapping[str, int], known: Mapping[str, Topic] | None) -> Iterator[str]:
    topics = "the 1 topic" if len(seen) == 1 else f"all {len(seen)} topics"
    yield f"every member is taken to subscribe to {topics} of the group, as subscriptions are not printed"
    if known is None:
        yield "partition counts are those seen in the assignment; --topics DUMP gives the real ones"
        return
    for name in seen:
        if name not in known:
            yield f"topic {name} is not in the dump; its partitions are those seen in the assignment"
