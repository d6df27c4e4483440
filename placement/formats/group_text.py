"""Read the cells of the tables that kafka-consumer-groups --describe prints, and the members in them.

A row whose cells do not stand under their headings is a RowError, never a guess. In groups of the consumer protocol
(KIP-848), whose members have epochs, a member also has a target assignment.

    >>> partitions_of("orders:0,1;audit:2") == partitions_of("orders(0,1), audit(2)")
    True

Source: Kafka 4.3.1 and 3.9.2 tools, ConsumerGroupCommand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from broker.ids import PartitionId, TopicPartition
from broker.partition_faults import PARTITION_ID_MAX, fault_of_topic_name

NONE: Final = "-"
HEADING: Final = re.compile(r"GROUP +[A-Z]")
SENTENCE: Final = re.compile(r"(?:Warning: )?Consumer group '(.*)' (has no active members|is rebalancing)\.")
NUMBER: Final = re.compile(r"[0-9]{1,10}")
_TITLE: Final = re.compile(r"COORDINATOR \(ID\)|\S+")
_OLD_TOPIC: Final = re.compile(r"([^()]*)\(([^()]*)\)(?:, |$)")


class RowError(Exception):
    """Report why one row cannot be used."""


@attrs.frozen(kw_only=True)
class MemberRow:
    """Hold one member; `held` is None where the output does not list it, `target` without epochs (classic groups)."""

    group: str
    member_id: str
    client_id: str
    instance_id: str | None = None
    host: str = ""
    held: tuple[TopicPartition, ...] | None = None
    target: tuple[TopicPartition, ...] | None = None
    line: int


def columns_of(heading: str) -> dict[str, slice]:
    """Return where the cells of each column stand in the rows below a heading."""
    starts = [(one[0], one.start()) for one in _TITLE.finditer(heading)]
    ends: list[int | None] = [*(start for _, start in starts[1:]), None]
    return {name: slice(start, end) for (name, start), end in zip(starts, ends, strict=True)}


def cells_of(line: str, columns: Mapping[str, slice]) -> dict[str, str]:
    """Return the cells of a row by column; raise RowError for cells that do not stand under their headings."""
    starts = [one.start for one in columns.values() if one.start]
    if any(line[start - 1 : start].strip() for start in starts):
        raise RowError("the cells do not stand under their headings, as the tool prints them")
    return {name: line[where].strip() for name, where in columns.items()}


def assignment_column(columns: Mapping[str, object]) -> str | None:
    """Return the name of the column with what members hold, None without it."""
    return next((name for name in ("CURRENT-ASSIGNMENT", "ASSIGNMENT") if name in columns), None)


def partitions_of(text: str) -> tuple[TopicPartition, ...]:
    """Return the partitions of an assignment as printed; raise RowError for one that no tool prints."""
    if text == NONE:
        return ()
    seen: dict[TopicPartition, None] = {}
    for topic, numbers in _topics(text):
        fault = fault_of_topic_name(topic)
        if fault:
            raise RowError(fault)
        for number in numbers.split(","):
            if NUMBER.fullmatch(number) is None or int(number) > PARTITION_ID_MAX:
                raise RowError(f"{number[:40]!r} is no partition number; allowed are 0 to {PARTITION_ID_MAX}")
            partition = TopicPartition(topic, PartitionId(int(number)))
            if partition in seen:
                raise RowError(f"partition {partition} is named twice")
            seen[partition] = None
    return tuple(seen)


def _topics(text: str) -> Iterator[tuple[str, str]]:
    """Yield each topic of an assignment with the numbers of its partitions, in the form of either age."""
    if "(" not in text:
        for part in text.split(";"):
            topic, _, numbers = part.partition(":")
            yield topic, numbers
        return
    place = 0
    while place < len(text):
        one = _OLD_TOPIC.match(text, place)
        if one is None:
            raise RowError("an assignment is topic:0,1;topic:2, or topic(0,1), topic(2)")
        yield one[1], one[2]
        place = one.end()


def member_of(cells: Mapping[str, str], line: int) -> MemberRow:
    """Return the member of a row, with what it holds if the row says so; raise RowError otherwise."""
    for needed in ("GROUP", "CONSUMER-ID"):
        if not cells.get(needed):
            raise RowError(f"{needed} is empty")
    name, held, target = assignment_column(cells), None, None
    if name is not None:
        held, count = partitions_of(cells[name]), cells.get("#PARTITIONS", "")
        if NUMBER.fullmatch(count) is None or int(count) != len(held):
            raise RowError(f"#PARTITIONS is {count or 'empty'}, but {name} names {len(held)} partitions")
        if cells.get("TARGET-EPOCH", NONE) not in ("", NONE):
            target = partitions_of(cells.get("TARGET-ASSIGNMENT", NONE))
    return MemberRow(
        group=cells["GROUP"],
        member_id=cells["CONSUMER-ID"],
        client_id=cells.get("CLIENT-ID", ""),
        instance_id=cells.get("GROUP-INSTANCE-ID") or None,
        host=cells.get("HOST", "").removeprefix("/"),
        held=held,
        target=target,
        line=line,
    )
