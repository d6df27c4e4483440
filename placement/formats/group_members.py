"""Read `kafka-consumer-groups --describe --members --verbose`: the members of groups, and what they hold.

What it decides: for each group of the output, its members in the order printed, with the partitions of the current
and, where members have epochs (the consumer protocol, KIP-848), of the target assignment.

Constraints: a row is a member. One that cannot be used is rejected, with its line and the reason: cells that do not
stand under their headings, a wrong topic or partition, a partition named twice, another number of partitions than
#PARTITIONS says, a member listed before. Rows in = rows analysed + rows rejected.

How: group_text.py reads cells and assignments.

Example: a group of two members and "Consumer group 'nightly' has no active members." are one group, and one in `empty`.

Left out: subscriptions and racks of members, which the tool does not print.

Source: Kafka 4.3.1 and 3.9.2 tools, ConsumerGroupCommand.printMembers and shouldPrintMemberState; KIP-1099.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.errors import InputError
from broker.ids import TopicPartition
from placement.formats.group_text import (
    HEADING,
    NONE,
    NUMBER,
    SENTENCE,
    RowError,
    assignment_column,
    cells_of,
    columns_of,
    partitions_of,
)
from placement.formats.parsed import Reject, RowCounts
from placement.formats.printed import is_list_of_names, what_is

FORMAT: Final = "kafka-consumer-groups"
MEMBERS: Final = "kafka-consumer-groups --describe --members --verbose"
_INSTEAD: Final = f"which does not say what each member holds; give what {MEMBERS} prints"


@attrs.frozen(kw_only=True)
class GroupMember:
    """Hold one member; `target` is None without epochs, in a group of the classic protocol."""

    member_id: str
    client_id: str
    held: tuple[TopicPartition, ...]
    instance_id: str | None = None
    host: str = ""
    target: tuple[TopicPartition, ...] | None = None


@attrs.frozen
class PrintedGroup:
    """Hold one group with its members in the order printed."""

    name: str
    members: tuple[GroupMember, ...]
    rebalancing: bool = False

    @property
    def has_epochs(self) -> bool:
        """Return whether a member has epochs, so that the coordinator assigns with its own assignor."""
        return any(member.target is not None for member in self.members)


@attrs.frozen(kw_only=True)
class PrintedMembers:
    """Hold the groups of one output by name; `empty` are those said to have no active members."""

    source: str
    groups: tuple[PrintedGroup, ...]
    empty: tuple[str, ...]
    rejects: tuple[Reject, ...]
    rows_in: int
    rows_analysed: int


def is_of_groups(text: str) -> bool:
    """Return whether a text is something that kafka-consumer-groups prints, with what each member holds or without.

    >>> is_of_groups("GROUP   CONSUMER-ID   HOST"), is_of_groups('{"members": []}')
    (True, False)
    """
    lines = [line.strip() for line in text.splitlines()]
    return any(HEADING.match(line) or SENTENCE.match(line) for line in lines) or is_list_of_names(text)


def read_group_members(text: str, *, source: str) -> PrintedMembers:
    """Return the groups of an output; raise InputError for another output, or if no row can be used."""
    rows, found = RowCounts(source, FORMAT), dict[str, dict[str, GroupMember]]()
    empty, rebalancing = list[str](), set[str]()
    columns: dict[str, slice] = {}
    other = False
    for number, line in enumerate(text.splitlines(), start=1):
        sentence = SENTENCE.match(line.strip())
        if sentence is not None:
            if sentence[2] == "is rebalancing":
                rebalancing.add(sentence[1])
            else:
                empty.append(sentence[1])
        elif HEADING.match(line):
            columns = columns_of(line)
            other = other or assignment_column(columns) is None
        elif columns and line.strip() and assignment_column(columns) is not None:
            _read_row(line, number, columns, rows, found)
    if not found and (other or not (columns or empty)) and not _are_of(text, empty):
        raise InputError(_what_it_is(text), source=source)
    if not found and rows.rejects:
        first = rows.rejects[0]
        raise InputError(f"no member can be used: {first.reason}", source=source, line=first.line, value=first.value)
    return PrintedMembers(
        source=source,
        groups=tuple(PrintedGroup(name, tuple(found[name].values()), name in rebalancing) for name in sorted(found)),
        empty=tuple(sorted(set(empty) - set(found))),
        rejects=tuple(rows.rejects),
        rows_in=rows.rows_analysed + len(rows.rejects),
        rows_analysed=rows.rows_analysed,
    )


def _are_of(text: str, empty: list[str]) -> bool:
    """Return whether all rows are of groups that the text says to have no active members."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [line for line in lines if not (HEADING.match(line) or SENTENCE.match(line.strip()))]
    return bool(empty) and all(any(row.startswith(f"{name} ") for name in empty) for row in rows)


def _what_it_is(text: str) -> str:
    what = what_is(text)
    if what is not None:
        return f"this is {what.split(',')[0]}, {_INSTEAD}"
    return f"this is a list of names, such as kafka-consumer-groups --list prints, {_INSTEAD}"


def _read_row(
    line: str, number: int, columns: dict[str, slice], rows: RowCounts, found: dict[str, dict[str, GroupMember]]
) -> None:
    """Add one member to its group, or reject its row."""
    try:
        group, member = member_of(line, columns)
        if member.member_id in found.get(group, {}):
            raise RowError(f"member {member.member_id!r} was listed before")
    except RowError as fault:
        rows.reject(str(fault), line, line=number)
        return
    found.setdefault(group, {})[member.member_id] = member
    rows.rows_analysed += 1


def member_of(line: str, columns: Mapping[str, slice]) -> tuple[str, GroupMember]:
    """Return the group and the member of a row with what it holds; raise RowError for a row that cannot be used."""
    cells = cells_of(line, columns)
    name = assignment_column(columns)
    assert name is not None
    for needed in ("GROUP", "CONSUMER-ID"):
        if not cells.get(needed):
            raise RowError(f"{needed} is empty")
    held, counted = partitions_of(cells[name]), cells.get("#PARTITIONS", "")
    if NUMBER.fullmatch(counted) is None or int(counted) != len(held):
        raise RowError(f"#PARTITIONS is {counted or 'empty'}, but {name} names {len(held)} partitions")
    has_epoch = cells.get("TARGET-EPOCH", NONE) not in ("", NONE)
    return cells["GROUP"], GroupMember(
        member_id=cells["CONSUMER-ID"],
        client_id=cells.get("CLIENT-ID", ""),
        instance_id=cells.get("GROUP-INSTANCE-ID") or None,
        host=cells.get("HOST", "").removeprefix("/"),
        held=held,
        target=partitions_of(cells.get("TARGET-ASSIGNMENT", NONE)) if has_epoch else None,
    )
