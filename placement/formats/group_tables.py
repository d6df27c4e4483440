"""Read every table that `kafka-consumer-groups --describe` prints: members, offsets, and states of groups.

A heading's columns say which table it begins; one text may have several, one for each group or of several runs of the
tool. A row under a heading is one entry: one that cannot be used is rejected, with its line and the reason.

Source: Kafka 4.3.1 and 3.9.2 tools, ConsumerGroupCommand.printOffsets, printMembers and printStates; KIP-1099.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import attrs

from broker.errors import InputError
from broker.ids import PartitionId
from broker.partition_faults import PARTITION_ID_MAX, fault_of_topic_name
from placement.formats.group_text import (
    HEADING,
    NONE,
    NUMBER,
    SENTENCE,
    MemberRow,
    RowError,
    cells_of,
    columns_of,
    member_of,
)
from placement.formats.parsed import ParsedDump, Reject, RowCounts
from placement.formats.printed import what_is

FORMAT: Final = "kafka-consumer-groups"
OFFSET_DIGITS_MAX: Final = 18  # Below 2**63; the tool pads to 15.


class GroupTable(Enum):
    """Name the tables that the tool prints."""

    MEMBERS = "members"
    OFFSETS = "offsets"
    STATES = "states"


@attrs.frozen(kw_only=True)
class OffsetRow:
    """Hold one partition of a group; None stands for what the tool prints as "-"."""

    group: str
    topic: str
    partition: PartitionId
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    host: str | None
    client_id: str | None
    line: int


@attrs.frozen(kw_only=True)
class StateRow:
    """Hold one group; the epochs are those of the consumer protocol (KIP-848), None without."""

    group: str
    coordinator: str
    assignor: str | None
    state: str
    member_count: int
    group_epoch: int | None
    target_epoch: int | None
    line: int


@attrs.frozen(kw_only=True)
class GroupTables:
    """Hold the rows of one output in the order printed; `rejects` name the table that each one stands in.

    `empty` are the groups printed as without active members, `rebalancing` those printed as rebalancing.
    """

    source: str
    members: tuple[MemberRow, ...]
    offsets: tuple[OffsetRow, ...]
    states: tuple[StateRow, ...]
    rejects: tuple[tuple[GroupTable, Reject], ...]
    lines_passed_over: int
    empty: frozenset[str] = frozenset()
    rebalancing: frozenset[str] = frozenset()

    def without(self, faults: Mapping[int, str]) -> GroupTables:
        """Return the tables with the rows of the given lines put aside, each for its reason."""
        if not faults:
            return self
        more = [
            (table, Reject(self.source, row.line, faults[row.line], row.group))
            for table in GroupTable
            for row in getattr(self, table.value)
            if row.line in faults
        ]
        return attrs.evolve(
            self,
            members=tuple(row for row in self.members if row.line not in faults),
            offsets=tuple(row for row in self.offsets if row.line not in faults),
            states=tuple(row for row in self.states if row.line not in faults),
            rejects=(*self.rejects, *more),
        )

    @property
    def account(self) -> ParsedDump:
        """Return the account of the rows: rows in = rows analysed + rows rejected."""
        analysed = len(self.members) + len(self.offsets) + len(self.states)
        return ParsedDump(
            source=self.source,
            format=FORMAT,
            clusters=(),
            rejects=tuple(reject for _, reject in self.rejects),
            rows_in=analysed + len(self.rejects),
            rows_analysed=analysed,
            rows_rejected=len(self.rejects),
            lines_passed_over=self.lines_passed_over,
        )


_Row = MemberRow | OffsetRow | StateRow


def _row(table: GroupTable, cells: Mapping[str, str], line: int) -> tuple[str, _Row]:
    """Return a row with the name under which it may be listed once; raise RowError if it cannot be used."""
    if table is GroupTable.MEMBERS:
        member = member_of(cells, line)
        return f"member {member.member_id!r}", member
    if table is GroupTable.OFFSETS:
        offset = _offset_row(cells, line)
        return f"partition {offset.topic}-{offset.partition}", offset
    return "the group", _state_row(cells, line)


def read_group_tables(text: str, *, source: str) -> GroupTables:
    """Return the rows of an output; raise InputError for a text without a table of kafka-consumer-groups."""
    counts, tables = RowCounts(source, FORMAT), list[GroupTable]()
    rows: dict[GroupTable, dict[tuple[str, str], _Row]] = {table: {} for table in GroupTable}
    sentences: dict[str, set[str]] = {"has no active members": set(), "is rebalancing": set()}
    columns: dict[str, slice] = {}
    table: GroupTable | None = None
    is_known, passed_over = False, 0
    for number, line in enumerate(text.split("\n"), start=1):
        sentence = SENTENCE.match(line.strip())
        if HEADING.match(line):
            columns = columns_of(line)
            table = _table_of(columns)
            if table is None:
                raise InputError(_not_ours(text), source=source, line=number, value=line.strip())
            is_known = True
        elif sentence is not None:
            sentences[sentence[2]].add(sentence[1])
            is_known = True
            passed_over += 1
        elif table is None or not line.strip():
            passed_over += bool(line.strip())
        else:
            try:
                name, row = _row(table, cells_of(line, columns), number)
                if rows[table].setdefault((row.group, name), row) is not row:
                    raise RowError(f"{name} was listed before")
            except RowError as fault:
                counts.reject(str(fault), line.strip(), line=number)
                tables.append(table)
    if not is_known:
        raise InputError(_not_ours(text), source=source, value=text.strip()[:80] or None)
    return GroupTables(
        source=source,
        members=tuple(row for row in rows[GroupTable.MEMBERS].values() if isinstance(row, MemberRow)),
        offsets=tuple(row for row in rows[GroupTable.OFFSETS].values() if isinstance(row, OffsetRow)),
        states=tuple(row for row in rows[GroupTable.STATES].values() if isinstance(row, StateRow)),
        rejects=tuple(zip(tables, counts.rejects, strict=True)),
        lines_passed_over=passed_over,
        empty=frozenset(sentences["has no active members"]),
        rebalancing=frozenset(sentences["is rebalancing"]),
    )


def _table_of(columns: Mapping[str, slice]) -> GroupTable | None:
    if {"TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET"} <= columns.keys():
        return GroupTable.OFFSETS
    if {"CONSUMER-ID", "CLIENT-ID"} <= columns.keys():
        return GroupTable.MEMBERS
    return GroupTable.STATES if {"STATE", "#MEMBERS", "COORDINATOR (ID)"} <= columns.keys() else None


def _not_ours(text: str) -> str:
    found = what_is(text)
    is_other = found is not None and FORMAT not in found
    what = f"this is {found.split(',')[0]}, and" if found is not None and is_other else "this is"
    return f"{what} not what {FORMAT} --describe prints, with --members, --offsets or --state"


def _offset_row(cells: Mapping[str, str], line: int) -> OffsetRow:
    topic, number = cells["TOPIC"], cells["PARTITION"]
    fault = fault_of_topic_name(topic)
    if fault:
        raise RowError(fault)
    if NUMBER.fullmatch(number) is None or int(number) > PARTITION_ID_MAX:
        raise RowError(f"{number[:40]!r} is no partition number; allowed are 0 to {PARTITION_ID_MAX}")
    return OffsetRow(
        group=_text(cells, "GROUP"),
        topic=topic,
        partition=PartitionId(int(number)),
        current_offset=_number(cells, "CURRENT-OFFSET"),
        log_end_offset=_number(cells, "LOG-END-OFFSET"),
        lag=_number(cells, "LAG", negative=True),
        member_id=_known(cells.get("CONSUMER-ID")),
        host=(_known(cells.get("HOST")) or "").removeprefix("/") or None,
        client_id=_known(cells.get("CLIENT-ID")),
        line=line,
    )


def _state_row(cells: Mapping[str, str], line: int) -> StateRow:
    member_count = _number(cells, "#MEMBERS")
    if member_count is None:
        raise RowError("#MEMBERS is not known")
    return StateRow(
        group=_text(cells, "GROUP"),
        coordinator=cells["COORDINATOR (ID)"],
        assignor=_known(cells.get("ASSIGNMENT-STRATEGY")),
        state=_text(cells, "STATE"),
        member_count=member_count,
        group_epoch=_number(cells, "GROUP-EPOCH"),
        target_epoch=_number(cells, "TARGET-ASSIGNMENT-EPOCH"),
        line=line,
    )


def _text(cells: Mapping[str, str], name: str) -> str:
    if not cells.get(name):
        raise RowError(f"{name} is empty")
    return cells[name]


def _known(text: str | None) -> str | None:
    return None if text in (None, "", NONE) else text


def _number(cells: Mapping[str, str], name: str, *, negative: bool = False) -> int | None:
    """Return a whole number, None for "-"; raise RowError for another text. A lag may be below 0 after a truncation."""
    text = cells.get(name, NONE)
    if text == NONE:
        return None
    digits = text.removeprefix("-") if negative else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= OFFSET_DIGITS_MAX):
        raise RowError(f"{name} is {text[:40]!r}; allowed are whole numbers, and - where it is not known")
    return int(text)
