"""Turn the entries of JSON formats into partition rows, with the checks and the sentences that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from broker.ids import INT32_MAX, NO_LEADER
from placement.formats.checks import (
    PARTITION_ID_MAX,
    fault_of_ids,
    fault_of_number,
    fault_of_row,
    fault_of_topic_name,
)
from placement.formats.documents import brief
from placement.formats.parsed import RowCounts
from placement.formats.rows import Closed, PartitionRows, Row


@attrs.frozen
class Entry:
    """Hold one partition as a document gives it, unchecked; None where the format lacks a field.

    `fault` is what is wrong with a field that only one format has.
    """

    place: str
    raw: Any
    topic: Any
    partition: Any
    replicas: Any
    has_leader: bool = False
    leader: Any = None
    isr: Any = None
    isr_name: str = "isr"
    offline: Any = None
    fault: str | None = None

    def first_fault(self) -> str | None:
        """Return why this entry cannot be used, or None."""
        fault = (
            fault_of_topic_name(self.topic)
            or fault_of_number(self.partition, "partition", high=PARTITION_ID_MAX)
            or fault_of_ids(self.replicas, "replicas")
            or (fault_of_ids(self.isr, self.isr_name) if self.isr is not None else None)
            or (fault_of_ids(self.offline, "offline") if self.offline is not None else None)
        )
        if fault:
            return fault
        if self.has_leader:
            fault = fault_of_number(self.leader, "leader", low=NO_LEADER, high=INT32_MAX)
            if fault:
                return fault
        return fault_of_row(self.leader if self.has_leader else None, self.replicas, self.isr, isr_name=self.isr_name)


@attrs.define(eq=False)
class EntryRows:
    """Collect the entries of one cluster; `close` rejects duplicates.

    `also` returns why an entry cannot be used that describes a possible partition; `places` are those of the entries
    that were appended.
    """

    row_counts: RowCounts
    rows: PartitionRows
    also: Callable[[Entry], str | None] = lambda _: None
    places: list[str] = attrs.field(factory=list)

    def add(self, entry: Entry) -> bool:
        """Append one entry or reject it; return whether it was appended."""
        fault = entry.first_fault() or self.also(entry) or entry.fault
        if fault:
            self.row_counts.reject(f"{entry.place}: {fault}", brief(entry.raw))
            return False
        self.rows.add(
            Row(
                line=len(self.places),
                topic=entry.topic,
                partition=entry.partition,
                replicas=tuple(entry.replicas),
                leader=entry.leader if entry.has_leader else None,
                isr=None if entry.isr is None else tuple(entry.isr),
                offline=None if entry.offline is None else tuple(entry.offline),
            )
        )
        self.places.append(entry.place)
        self.row_counts.rows_analysed += 1
        return True

    def close(self) -> Closed:
        """Return the finished table; duplicates and rows too wide are rejected."""
        closed = self.rows.close(lambda line: f"already given by {self.places[line]}")
        for row in closed.rejected:
            self.row_counts.rows_analysed -= 1
            self.row_counts.reject(f"{self.places[row.line]}: {row.reason}", row.partition)
        return closed
