"""Turn the entries of JSON formats into partition rows, with the checks and the sentences that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import PAD, ClusterView, Int32Array, TopicView
from broker.ids import INT32_MAX, NO_LEADER
from broker.partition_faults import (
    PARTITION_ID_MAX,
    fault_of_ids,
    fault_of_number,
    fault_of_row,
    fault_of_topic_name,
)
from placement.formats.documents import brief
from placement.formats.parsed import RowCounts
from placement.formats.rows import Chunk, Closed, PartitionRows, Row

BATCH_COUNT: Final = 1000
"""Entries that are checked at once: so many are looked at one by one for each that cannot be used."""
PLAIN_WIDTH_MAX: Final = 100


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
    adding: Any = None
    removing: Any = None
    line: int | None = None

    def first_fault(self) -> str | None:
        """Return why this entry cannot be used, or None."""
        fault = (
            fault_of_topic_name(self.topic)
            or fault_of_number(self.partition, "partition", high=PARTITION_ID_MAX)
            or fault_of_ids(self.replicas, "replicas")
            or (fault_of_ids(self.isr, self.isr_name) if self.isr is not None else None)
            or (fault_of_ids(self.offline, "offline") if self.offline is not None else None)
            or (fault_of_ids(self.adding, "adding_replicas") if self.adding is not None else None)
            or (fault_of_ids(self.removing, "removing_replicas") if self.removing is not None else None)
        )
        if fault:
            return fault
        if self.has_leader:
            fault = fault_of_number(self.leader, "leader", low=NO_LEADER, high=INT32_MAX)
            if fault:
                return fault
        return fault_of_row(self.leader if self.has_leader else None, self.replicas, self.isr, isr_name=self.isr_name)


@attrs.frozen(eq=False)
class Columns:
    """Hold entries in which no fault can be found: replicas int32[N, W], padded by -1, and no named log directory."""

    topics: list[str]
    partitions: Int32Array
    replicas: Int32Array

    @classmethod
    def of(cls, raws: list[Any]) -> Columns | None:
        """Return the columns of a reassignment's entries; None where one of them may have a fault."""
        try:
            topics, numbers, lists = ([raw[key] for raw in raws] for key in ("topic", "partition", "replicas"))
            dirs = [raw.get("log_dirs") for raw in raws]
        except (TypeError, KeyError):
            return None
        if {*map(type, topics)} != {str} or {*map(type, numbers)} != {int} or {*map(type, lists)} != {list}:
            return None
        widths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        flat = list(chain.from_iterable(lists))
        if not 0 < widths.min() <= widths.max() <= PLAIN_WIDTH_MAX or {*map(type, flat)} != {int}:
            return None
        if not (0 <= min(flat) <= max(flat) <= INT32_MAX and 0 <= min(numbers) <= max(numbers) <= PARTITION_ID_MAX):
            return None
        unnamed = [["any"] * width for width in range(int(widths.max()) + 1)]
        if any(fault_of_topic_name(name) for name in set(topics)) or any(
            each is not None and each != unnamed[len(replicas)] for each, replicas in zip(dirs, lists, strict=True)
        ):
            return None
        matrix = np.full((len(lists), widths.max()), PAD, dtype=np.int32)
        matrix[np.arange(matrix.shape[1]) < widths[:, None]] = flat
        ordered = np.sort(matrix, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            return None
        return cls(topics, np.array(numbers, dtype=np.int32), matrix)


@attrs.define(eq=False)
class EntryRows:
    """Collect the entries of one cluster; `close` rejects duplicates.

    `also` returns why an entry cannot be used that describes a possible partition, `fits` whether it returns None for
    each of many; `places` are those of the entries that were appended, by line.
    """

    row_counts: RowCounts
    rows: PartitionRows
    also: Callable[[Entry], str | None] = lambda _: None
    fits: Callable[[Columns], bool] = lambda _: True
    places: list[str] = attrs.field(factory=list)

    def add_reassignments(self, prefix: str, raws: list[Any], add: Callable[[str, Any], object]) -> None:
        """Append the entries of a reassignment; `add` does it one by one, with their place, where one has a fault."""
        for start in range(0, len(raws), BATCH_COUNT):
            batch = raws[start : start + BATCH_COUNT]
            places = [f"{prefix}partitions[{number}]" for number in range(start, start + len(batch))]
            found = Columns.of(batch)
            if found is None or not self.fits(found):
                for place, raw in zip(places, batch, strict=True):
                    add(place, raw)
                continue
            chunk = Chunk(
                line=np.arange(len(self.places), len(self.places) + len(batch)),
                topic_index=np.array([self.rows.topic_index(name) for name in found.topics], dtype=np.int32),
                partition_ids=found.partitions,
                leader=None,
                matrices={"replicas": found.replicas},
            )
            self.rows.add_chunk(chunk)
            self.places += places
            self.row_counts.rows_analysed += len(batch)

    def add(self, entry: Entry) -> bool:
        """Append one entry or reject it; return whether it was appended."""
        fault = entry.first_fault() or self.also(entry) or entry.fault
        if fault:
            place = f"{entry.place}: " if entry.line is None else ""
            self.row_counts.reject(place + fault, brief(entry.raw), line=entry.line)
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
                adding=tuple(entry.adding) if entry.adding else None,
                removing=tuple(entry.removing) if entry.removing else None,
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
            self.row_counts.reject(f"{self.places[row.line]}: {row.reason}", row.partition, is_repeat=row.is_repeat)
        return closed

    def view_of(self, closed: Closed, name: str, **more: Any) -> ClusterView:
        """Return the cluster of the finished table; `more` is what the format says besides."""
        counts = self.row_counts
        return ClusterView.build(
            name=name,
            source=counts.source,
            format=counts.format,
            partitions=closed.table,
            topics=tuple(map(TopicView, self.rows.topics)),
            **({"notes": tuple(counts.notes)} | more),
        )
