"""Read a consumer group from JSON, and its former assignment from JSON or the output of kafka-consumer-groups.

Words are those of Kafka's protocol and tools; case and punctuation of keys do not matter. `brokerside groups assign
--help` shows the forms. Source: ours; ConsumerGroupCommand (4.3.1) for the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from broker.errors import InputError
from broker.ids import INT32_MAX, PartitionId, TopicPartition
from broker.partition_faults import PARTITION_ID_MAX, fault_of_number, fault_of_topic_name
from placement.consumer.group import NO_GENERATION, Group, Member, RecordedPartitions, Topic
from placement.formats.documents import brief, collect, folded, parse_object

MEMBER_COUNT_MAX: Final = 100_000  # Kafka's group.consumer.max.size is Java's int, but no group is near this.
GROUP_PARTITIONS_MAX: Final = 100_000
"""How many partitions are read of one group: each is printed, and a line of JSON could ask for ten million."""
GENERATION_DEFAULT: Final = 1
CLASSIC_DEFAULT: Final = "range"
_MEMBER_ID: Final = ("memberid", "consumerid")


@attrs.frozen
class Previous:
    """Hold each member's former partitions, with their generation; members may have left since."""

    held: Mapping[str, tuple[TopicPartition, ...]] = attrs.field(factory=dict)
    generations: Mapping[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, held: Mapping[str, tuple[TopicPartition, ...]]) -> Previous:
        """Return what members held in one generation."""
        return cls(held, dict.fromkeys(held, GENERATION_DEFAULT))


@attrs.frozen(kw_only=True)
class GroupQuestion:
    """Hold one group to assign, members in the order given: assignors start from `owned`, moves are from `held`."""

    members: tuple[Member, ...]
    topics: tuple[Topic, ...]
    owned: Previous = attrs.field(factory=Previous)
    held: Previous = attrs.field(factory=Previous)
    name: str = ""
    assignor: str = CLASSIC_DEFAULT
    clients: Mapping[str, str] = attrs.field(factory=dict)
    notes: tuple[str, ...] = ()

    def group(self, previous: Previous) -> Group:
        """Return the group whose members hold what they held; a new member has nothing, in no generation."""
        members = [
            attrs.evolve(one, owned=previous.held[one.id], generation=previous.generations[one.id])
            if one.id in previous.held
            else one
            for one in self.members
        ]
        return Group.of(members, self.topics)

    @property
    def held_count(self) -> int:
        """Return how many partitions somebody held."""
        return len({one for held in self.held.held.values() for one in held})


@attrs.frozen
class _Entry:
    """Hold one JSON object and its place in the document, which errors name."""

    fields: Mapping[str, Any]
    place: str
    source: str

    def listed(self, key: str) -> list[tuple[str, Any]]:
        """Return the values of a list, each with its place."""
        value, where = self.fields.get(key), f"{self.place}.{key}".lstrip(".")
        if not isinstance(value, list):
            shown = None if value is None else brief(value)
            raise InputError(f"{where} is missing or no list", source=self.source, value=shown)
        if key == "members" and len(value) > MEMBER_COUNT_MAX:
            what = f"{where} has {len(value)} entries; at most {MEMBER_COUNT_MAX} are read"
            raise InputError(what, source=self.source)
        return [(f"{where}[{number}]", one) for number, one in enumerate(value)]

    def entries(self, key: str) -> list[_Entry]:
        """Return the objects of a list."""
        return [_Entry(folded(one), where, self.source) for where, one in self.listed(key)]

    def text(self, *keys: str) -> str | None:
        """Return the text under the first of the keys that is given."""
        found = next((self.fields[key] for key in keys if self.fields.get(key) is not None), None)
        if found is not None and not isinstance(found, str):
            raise InputError(f"{self.place}: {keys[0]} is no text", source=self.source, value=brief(found))
        return found

    def member_id(self) -> str:
        """Return the member's id."""
        found = self.text(*_MEMBER_ID)
        if not found:
            raise InputError(f"{self.place} has no member_id", source=self.source)
        return found

    def number(self, value: Any, what: str, *, low: int = 0, high: int = INT32_MAX) -> int:
        """Return a whole number within its bounds."""
        if fault := fault_of_number(value, what, low=low, high=high):
            raise InputError(fault, source=self.source)
        return int(value)

    def generation(self, default: int) -> int:
        """Return the generation, or the default."""
        what = f"{self.place}.generation".lstrip(".")
        return self.number(self.fields.get("generation", default), what, low=NO_GENERATION)

    def topic_name(self, value: Any, place: str) -> str:
        """Return a topic's name."""
        if fault := fault_of_topic_name(value):
            shown = value if isinstance(value, str) else None
            raise InputError(f"{place}: {fault}", source=self.source, value=shown)
        return str(value)


def read_group_spec(data: bytes, *, source: str) -> GroupQuestion:
    """Return the group that a JSON text describes; raise InputError saying what is wrong, and where."""
    text = collect([data], source=source)
    document = _Entry(folded(parse_object(text, source=source, shown_by="brokerside groups assign --help")), "", source)
    topics = tuple(map(_topic, document.entries("topics")))
    members = tuple(map(_member, document.entries("members")))
    total = sum(one.partition_count for one in topics)
    if total > GROUP_PARTITIONS_MAX:
        what = f"the topics have {total} partitions together; at most {GROUP_PARTITIONS_MAX} are read"
        raise InputError(what, source=source)
    _refuse_twice([one.name for one in topics], "topic", source)
    _refuse_twice([one.id for one in members], "member", source)
    return GroupQuestion(members=members, topics=topics)


def read_previous(data: bytes, *, source: str) -> Previous:
    """Return the former assignment in JSON or a table; raise InputError saying what is wrong, and where."""
    text = collect([data], source=source)
    if not text.lstrip().startswith("{"):
        return _read_table(text, source)
    document = _Entry(folded(parse_object(text, source=source)), "", source)
    generation, entries = document.generation(GENERATION_DEFAULT), document.entries("members")
    _refuse_twice([entry.member_id() for entry in entries], "member", source)
    held = {
        entry.member_id(): RecordedPartitions(
            one for given in entry.entries("partitions") for one in _partitions(given)
        )
        for entry in entries
    }
    return Previous(held, {entry.member_id(): entry.generation(generation) for entry in entries})


def _topic(entry: _Entry) -> Topic:
    name = entry.topic_name(entry.fields.get("topic", entry.fields.get("name")), entry.place)
    count = entry.number(entry.fields.get("partitions"), f"{entry.place}.partitions", high=PARTITION_ID_MAX)
    racks, what = entry.fields.get("replicaracks"), f"{entry.place}.replica_racks"
    if racks is not None and not (isinstance(racks, list) and all(_are_texts(row) for row in racks)):
        raise InputError(f"{what} is no list of lists of racks", source=entry.source, value=brief(racks))
    if racks is not None and len(racks) != count:
        raise InputError(f"{what} has {len(racks)} lists for {count} partitions", source=entry.source)
    named = None if racks is None else tuple(map(tuple, racks))
    return Topic(name=name, partition_count=count, id=entry.text("topicid", "id"), replica_racks=named)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _member(entry: _Entry) -> Member:
    return Member(
        topics=tuple(entry.topic_name(one, f"{entry.place}.topics") for _, one in entry.listed("topics")),
        id=entry.member_id(),
        instance_id=entry.text("groupinstanceid", "instanceid"),
        rack=entry.text("rackid", "rack"),
    )


def _partitions(entry: _Entry) -> list[TopicPartition]:
    topic, numbers = entry.topic_name(entry.fields.get("topic"), entry.place), entry.fields.get("partitions")
    listed = numbers if isinstance(numbers, list) else [entry.fields.get("partition")]
    what = f"a partition in {entry.place}"
    return [TopicPartition(topic, PartitionId(entry.number(number, what))) for number in listed]


def _read_table(text: str, source: str) -> Previous:
    columns: dict[str, int] = {}
    held: dict[str, list[TopicPartition]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.split()
        if {"TOPIC", "PARTITION", "CONSUMER-ID"} <= set(cells):
            # From the right, as the id of a group, the first column, may have blanks.
            columns = {name: cells.index(name) - len(cells) for name in ("TOPIC", "PARTITION", "CONSUMER-ID")}
        elif columns and len(cells) >= -min(columns.values()):
            topic, partition, member = (cells[place] for place in columns.values())
            is_number = partition.isascii() and partition.isdigit() and len(partition) <= 10
            value = int(partition) if is_number else partition
            fault = fault_of_topic_name(topic) or fault_of_number(value, "PARTITION")
            if fault:
                raise InputError(fault, source=source, line=number, value=line)
            if member != "-":
                held.setdefault(member, []).append(TopicPartition(topic, PartitionId(int(partition))))
    if not columns:
        what = "neither a JSON object nor a table with the columns TOPIC, PARTITION and CONSUMER-ID"
        raise InputError(what, source=source, value=text[:200])
    return Previous.of({name: tuple(rows) for name, rows in held.items()})


def _refuse_twice(names: list[str], what: str, source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what} is given twice", source=source, value=name)
        seen.add(name)
