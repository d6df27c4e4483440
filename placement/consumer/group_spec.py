"""Read a consumer group from JSON, and its former assignment from JSON or the output of kafka-consumer-groups.

What it decides: what `brokerside groups assign` reads. Words are those of Kafka's protocol and tools; case and
punctuation of keys do not matter.

A group is given as one JSON object:

    {"topics": [{"topic": "orders", "partitions": 12, "topic_id": "PTbYb4j67mdVntpRPBbzHg",
                 "replica_racks": [["a", "b"], ["b", "c"]]}],
     "members": [{"member_id": "c0", "topics": ["orders"], "group_instance_id": "i0", "rack_id": "a"}]}

`topic_id`, `replica_racks` (a list for each partition), `group_instance_id` and `rack_id` may be left out. Members are
taken in the order in which they stand.

The former assignment is given in one of these forms:

    {"generation": 4, "members": [{"member_id": "c0", "generation": 3,
                                   "partitions": [{"topic": "orders", "partitions": [0, 1]}]}]}
    GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID

The first form is also the output of `groups assign --json`. `generation` is 1 by default, and a member may have its
own. `{"topic": "orders", "partition": 0}` stands for one partition. In the table, columns are found by their
names; a partition whose CONSUMER-ID is "-" is nobody's.

Constraints: as for all formats here: names are checked, ids bounded, and a text is refused before it takes much memory.

Left out: several groups in one table, of which the first wins an error.

Source: ours; ConsumerGroupCommand (4.0) for the table, ConsumerProtocolSubscription for the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from broker.errors import InputError
from broker.ids import INT32_MAX, PartitionId, TopicPartition
from placement.consumer.group import NO_GENERATION, Member, Topic
from placement.formats.checks import PARTITION_ID_MAX, fault_of_number, fault_of_topic_name
from placement.formats.documents import brief, collect, folded, parse_object

MEMBER_COUNT_MAX: Final = 100_000  # Kafka's group.consumer.max.size is Java's int, but no group is near this.
GENERATION_DEFAULT: Final = 1


@attrs.frozen
class GroupSpec:
    """Hold the members and topics of a group, in the order given."""

    members: tuple[Member, ...]
    topics: tuple[Topic, ...]

    def holding(self, previous: Previous) -> GroupSpec:
        """Return the members with their former partitions; a new member has none, in no generation."""
        members = [
            attrs.evolve(one, owned=previous.held[one.id], generation=previous.generations[one.id])
            if one.id in previous.held
            else one
            for one in self.members
        ]
        return GroupSpec(tuple(members), self.topics)


@attrs.frozen
class Previous:
    """Hold each member's former partitions, with their generation; members may have left since."""

    held: Mapping[str, tuple[TopicPartition, ...]]
    generations: Mapping[str, int]


def read_group_spec(data: bytes, *, source: str) -> GroupSpec:
    """Return the group that a JSON text describes; raise InputError saying what is wrong, and where."""
    text = collect([data], source=source)
    document = folded(parse_object(text, source=source, shown_by="brokerside groups assign --help"))
    topics = [_topic(one, f"topics[{place}]", source) for place, one in _listed(document, "topics", "", source)]
    members = [_member(one, f"members[{place}]", source) for place, one in _listed(document, "members", "", source)]
    _refuse_twice([one.name for one in topics], "topic", source)
    _refuse_twice([one.id for one in members], "member", source)
    return GroupSpec(tuple(members), tuple(topics))


def read_previous(data: bytes, *, source: str) -> Previous:
    """Return the former assignment in JSON or a table; raise InputError saying what is wrong, and where."""
    text = collect([data], source=source)
    if not text.lstrip().startswith("{"):
        return _read_table(text, source)
    document = folded(parse_object(text, source=source))
    generation = _generation(document, GENERATION_DEFAULT, "", source)
    held: dict[str, tuple[TopicPartition, ...]] = {}
    generations: dict[str, int] = {}
    entries = [(f"members[{place}]", folded(one)) for place, one in _listed(document, "members", "", source)]
    _refuse_twice(
        [_text(entry, ("memberid", "consumerid"), place, source) for place, entry in entries], "member", source
    )
    for place, entry in entries:
        member = _text(entry, ("memberid", "consumerid"), place, source)
        held[member] = tuple(
            partition
            for index, one in _listed(entry, "partitions", place, source)
            for partition in _partitions(one, f"{place}.partitions[{index}]", source)
        )
        generations[member] = _generation(entry, generation, place, source)
    return Previous(held, generations)


def _topic(value: Any, place: str, source: str) -> Topic:
    entry = folded(value)
    name = _topic_name(entry.get("topic", entry.get("name")), place, source)
    fault = fault_of_number(entry.get("partitions"), f"{place}.partitions", high=PARTITION_ID_MAX)
    if fault:
        raise InputError(fault, source=source)
    racks = entry.get("replicaracks")
    if racks is not None and not (isinstance(racks, list) and all(_are_texts(row) for row in racks)):
        raise InputError(f"{place}.replica_racks is no list of lists of racks", source=source, value=brief(racks))
    if racks is not None and len(racks) != entry["partitions"]:
        what = f"{place}.replica_racks has {len(racks)} lists for {entry['partitions']} partitions"
        raise InputError(what, source=source)
    return Topic(
        name=name,
        partition_count=entry["partitions"],
        id=_optional(entry, ("topicid", "id"), place, source),
        replica_racks=None if racks is None else tuple(tuple(row) for row in racks),
    )


def _member(value: Any, place: str, source: str) -> Member:
    entry = folded(value)
    topics = [_topic_name(one, f"{place}.topics", source) for _, one in _listed(entry, "topics", place, source)]
    return Member(
        id=_text(entry, ("memberid", "consumerid"), place, source),
        topics=tuple(topics),
        instance_id=_optional(entry, ("groupinstanceid", "instanceid"), place, source),
        rack=_optional(entry, ("rackid", "rack"), place, source),
    )


def _partitions(value: Any, place: str, source: str) -> list[TopicPartition]:
    entry = folded(value)
    topic = _topic_name(entry.get("topic"), place, source)
    numbers = entry["partitions"] if isinstance(entry.get("partitions"), list) else [entry.get("partition")]
    return [TopicPartition(topic, _partition(number, f"a partition in {place}", source)) for number in numbers]


def _partition(value: Any, what: str, source: str) -> PartitionId:
    fault = fault_of_number(value, what)
    if fault:
        raise InputError(fault, source=source)
    return PartitionId(value)


def _read_table(text: str, source: str) -> Previous:
    columns: dict[str, int] = {}
    held: dict[str, list[TopicPartition]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.split()
        if {"TOPIC", "PARTITION", "CONSUMER-ID"} <= set(cells):
            # From the right, as the id of a group, the first column, may have blanks.
            columns = {name: cells.index(name) - len(cells) for name in ("TOPIC", "PARTITION", "CONSUMER-ID")}
        elif columns and len(cells) >= -min(columns.values()):
            topic, partition = cells[columns["TOPIC"]], cells[columns["PARTITION"]]
            value = (
                int(partition) if partition.isascii() and partition.isdigit() and len(partition) <= 10 else partition
            )
            fault = fault_of_topic_name(topic) or fault_of_number(value, "PARTITION")
            if fault:
                raise InputError(fault, source=source, line=number, value=line)
            if cells[columns["CONSUMER-ID"]] != "-":
                held.setdefault(cells[columns["CONSUMER-ID"]], []).append(
                    TopicPartition(topic, PartitionId(int(partition)))
                )
    if not columns:
        what = "neither a JSON object nor a table with the columns TOPIC, PARTITION and CONSUMER-ID"
        raise InputError(what, source=source, value=text[:200])
    return Previous({name: tuple(rows) for name, rows in held.items()}, dict.fromkeys(held, GENERATION_DEFAULT))


def _listed(entry: Mapping[str, Any], key: str, place: str, source: str) -> list[tuple[int, Any]]:
    value = entry.get(key)
    where = f"{place}.{key}".lstrip(".")
    if not isinstance(value, list):
        raise InputError(f"{where} is missing or no list", source=source, value=None if value is None else brief(value))
    if key == "members" and len(value) > MEMBER_COUNT_MAX:
        raise InputError(f"{where} has {len(value)} entries; at most {MEMBER_COUNT_MAX} are read", source=source)
    return list(enumerate(value))


def _text(entry: Mapping[str, Any], keys: Sequence[str], place: str, source: str) -> str:
    found = _optional(entry, keys, place, source)
    if not found:
        raise InputError(f"{place} has no member_id", source=source)
    return found


def _optional(entry: Mapping[str, Any], keys: Sequence[str], place: str, source: str) -> str | None:
    found = next((entry[key] for key in keys if entry.get(key) is not None), None)
    if found is not None and not isinstance(found, str):
        raise InputError(f"{place}: {keys[0]} is no text", source=source, value=brief(found))
    return found


def _topic_name(value: Any, place: str, source: str) -> str:
    fault = fault_of_topic_name(value)
    if fault:
        raise InputError(f"{place}: {fault}", source=source, value=value if isinstance(value, str) else None)
    assert isinstance(value, str)
    return value


def _generation(entry: Mapping[str, Any], default: int, place: str, source: str) -> int:
    value = entry.get("generation", default)
    fault = fault_of_number(value, f"{place}.generation".lstrip("."), low=NO_GENERATION, high=INT32_MAX)
    if fault:
        raise InputError(fault, source=source)
    return int(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _refuse_twice(names: Sequence[str], what: str, source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what} is given twice", source=source, value=name)
        seen.add(name)
