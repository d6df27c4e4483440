"""Read groups, of what kafka-consumer-groups printed or of a snapshot, into the same tables.

A snapshot's groups are, with null for what is not known:

    [{"group": "g", "state": "STABLE", "assignor": "range", "coordinator": "b1:9092 (1)",
      "members": [{"member_id": "c-1", "client_id": "c", "host": "h", "group_instance_id": null,
                   "assignment": [{"topic": "orders", "partition": 0}], "target": null}],
      "offsets": [{"topic": "orders", "partition": 0, "offset": 5, "end_offset": 9, "lag": 4}]}]

Source: ours; Kafka 4.4.0 clients DescribeGroups, ConsumerGroupDescribe, OffsetFetch, ListOffsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from broker.errors import InputError
from broker.ids import INT64_MAX, PartitionId, TopicPartition
from broker.partition_faults import PARTITION_ID_MAX, fault_of_number, fault_of_topic_name
from placement.formats.documents import brief, parse_object, plain
from placement.formats.group_tables import GroupTable, GroupTables, OffsetRow, StateRow, read_group_tables
from placement.formats.group_text import MemberRow, RowError
from placement.formats.parsed import Reject
from placement.formats.snapshot import VERSION_KEY

_FIRST_KEY: Final = re.compile(rf"\s*\{{\s*\"{VERSION_KEY}\"")
_REBALANCING: Final = ("PREPARING_REBALANCING", "COMPLETING_REBALANCING", "ASSIGNING", "RECONCILING")


def read_groups_text(text: str, *, source: str) -> GroupTables:
    """Return the groups in a text; raise InputError for one of no known format."""
    if not is_snapshot_text(text):
        return read_group_tables(text, source=source)
    return _Reading(source).tables(parse_object(text, source=source))


def is_snapshot_text(text: str) -> bool:
    """Return whether a text is a snapshot, by its first key.

    >>> is_snapshot_text('{"brokerside_snapshot":1,"topics":[]}'), is_snapshot_text('{"topics":[]}')
    (True, False)
    """
    return _FIRST_KEY.match(text) is not None


@attrs.define
class _Reading:
    """Collect the rows of a snapshot's groups; `line` counts them."""

    source: str
    line: int = 0
    rejects: list[tuple[GroupTable, Reject]] = attrs.field(factory=list)

    def tables(self, value: dict[str, Any]) -> GroupTables:
        """Return the tables; raise InputError for a snapshot taken without groups."""
        groups = value.get("groups")
        if not isinstance(groups, list):
            raise InputError("the snapshot has no groups; its notes say why", source=self.source)
        found = [group for group in groups if isinstance(group, dict) and plain(group.get("group"))]
        states = {str(group["group"]): str(group.get("state")) for group in found}
        members = tuple(self._rows(found, GroupTable.MEMBERS, "members", self._member))
        held = {row.group for row in members}
        return GroupTables(
            source=self.source,
            members=members,
            offsets=tuple(self._rows(found, GroupTable.OFFSETS, "offsets", self._offset)),
            states=tuple(self._state(group) for group in found),
            rejects=tuple(self.rejects),
            lines_passed_over=0,
            empty=frozenset(states.keys() - held),
            rebalancing=frozenset(name for name, state in states.items() if state in _REBALANCING),
        )

    def _rows(self, groups: list[dict[str, Any]], table: GroupTable, key: str, read: Any) -> Iterator[Any]:
        for group in groups:
            for item in group.get(key) or ():
                self.line += 1
                try:
                    yield read(str(group["group"]), item if isinstance(item, dict) else {})
                except RowError as fault:
                    self.rejects.append((table, Reject(self.source, self.line, str(fault), brief(item))))

    def _member(self, group: str, item: dict[str, Any]) -> MemberRow:
        if plain(item.get("member_id")) is None:
            raise RowError("a member has no member_id")
        target = item.get("target")
        return MemberRow(
            group=group,
            member_id=str(plain(item["member_id"])),
            client_id=plain(item.get("client_id")) or "",
            instance_id=plain(item.get("group_instance_id")),
            host=(plain(item.get("host")) or "").removeprefix("/"),
            held=tuple(map(_partition, item.get("assignment") or ())),
            target=tuple(map(_partition, target)) if isinstance(target, list) else None,
            line=self.line,
        )

    def _offset(self, group: str, item: dict[str, Any]) -> OffsetRow:
        where = _partition(item)
        return OffsetRow(
            group=group,
            topic=where.topic,
            partition=where.partition,
            current_offset=_number(item, "offset"),
            log_end_offset=_number(item, "end_offset"),
            lag=_number(item, "lag", low=-INT64_MAX),
            member_id=None,
            host=None,
            client_id=None,
            line=self.line,
        )

    def _state(self, group: dict[str, Any]) -> StateRow:
        self.line += 1
        return StateRow(
            group=str(group["group"]),
            coordinator=plain(group.get("coordinator")) or "",
            assignor=plain(group.get("assignor")),
            state=plain(group.get("state")) or "UNKNOWN",
            member_count=len(group.get("members") or ()),
            group_epoch=None,
            target_epoch=None,
            line=self.line,
        )


def _partition(item: Any) -> TopicPartition:
    topic, number = (item.get("topic"), item.get("partition")) if isinstance(item, dict) else (None, None)
    fault = fault_of_topic_name(topic) or fault_of_number(number, "partition", high=PARTITION_ID_MAX)
    if fault or number is None:
        raise RowError(str(fault))
    return TopicPartition(str(topic), PartitionId(number))


def _number(item: dict[str, Any], name: str, *, low: int = 0) -> int | None:
    value = item.get(name)
    fault = None if value is None else fault_of_number(value, name, low=low, high=INT64_MAX)
    if fault:
        raise RowError(fault)
    return None if value is None else int(value)
