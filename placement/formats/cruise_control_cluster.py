"""Read Cruise Control's `/kafka_cluster_state`: counts per broker, and lists of problem partitions.

With `verbose=true` all lists together are the whole cluster; comparing the replicas listed for each broker with its
counts tells which it is. An entry that contradicts an earlier one is rejected.

Source: Cruise Control ClusterBrokerState, ClusterPartitionState, PartitionState.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import BrokerTotals, BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from broker.partition_faults import fault_of_number
from placement.formats.cruise_control_load import COUNT_MAX
from placement.formats.documents import brief, folded, plain
from placement.formats.entries import Entry, EntryRows
from placement.formats.parsed import RowCounts
from placement.formats.rows import PartitionRows
from placement.formats.sizes import PATH_LENGTH_MAX

_LISTS: Final = ("offline", "urp", "withofflinereplicas", "underminisr", "other")
_COUNTS: Final = ("replicacountbybrokerid", "leadercountbybrokerid")


def is_cluster_state(value: dict[str, Any]) -> bool:
    """Return whether an object is a /kafka_cluster_state response."""
    return bool({"kafkabrokerstate", "kafkapartitionstate"} & folded(value).keys())


@attrs.define(eq=False)
class _Partitions:
    entries: EntryRows
    minimum: dict[str, int] = attrs.field(factory=dict)
    seen: dict[tuple[str, int], Any] = attrs.field(factory=dict)

    def add(self, place: str, raw: Any) -> None:
        item = folded(raw)
        topic, partition = item.get("topic"), item.get("partition")
        key = (topic, partition) if isinstance(topic, str) and isinstance(partition, int) else None
        if key is not None and key in self.seen and self.seen[key] == raw:
            self.entries.row_counts.rows_analysed += 1
            return
        minimum = item.get("minisr")
        fault = None if minimum is None else fault_of_number(minimum, "min-isr", low=1)
        if fault:
            self.entries.row_counts.reject(f"{place}: {fault}", brief(raw))
            return
        taken = self.entries.add(
            Entry(
                place=place,
                raw=raw,
                topic=topic,
                partition=partition,
                replicas=item.get("replicas"),
                has_leader=True,
                leader=item.get("leader"),
                isr=item.get("insync", "missing"),
                isr_name="in-sync",
                offline=item.get("offline"),
            )
        )
        if taken and key is not None:
            self.seen.setdefault(key, raw)
            if isinstance(minimum, int):
                self.minimum.setdefault(key[0], minimum)


def read_cluster_state(value: dict[str, Any], row_counts: RowCounts, *, name: str) -> ClusterView:
    """Return the cluster of one response; unusable entries are rejected in `row_counts`."""
    answer = folded(value)
    counts = {key: _counts(key, folded(answer.get("kafkabrokerstate")).get(key), row_counts) for key in _COUNTS}
    partitions = _Partitions(EntryRows(row_counts, PartitionRows(row_counts.source)))
    states = folded(answer.get("kafkapartitionstate"))
    for key in _LISTS:
        listed = states.get(key)
        for number, raw in enumerate(listed if isinstance(listed, list) else []):
            partitions.add(f"{key}[{number}]", raw)
    table = partitions.entries.close().table
    ids = sorted(
        {identity for column in counts.values() for identity in column or {}} | set(table.broker_ids().tolist())
    )
    replica_count, leader_count = ([column.get(i, 0) for i in ids] if column else None for column in counts.values())
    complete = bool(states.get("other")) if replica_count is None else _listed_replicas(table, ids) == replica_count
    return ClusterView(
        name=name,
        source=row_counts.source,
        format=row_counts.format,
        brokers=tuple(BrokerView(id=BrokerId(identity)) for identity in ids),
        topics=tuple(
            TopicView(topic, min_insync_replicas=partitions.minimum.get(topic))
            for topic in partitions.entries.rows.topics
        ),
        partitions=table,
        totals=BrokerTotals(replica_count=replica_count, leader_count=leader_count) if any(counts.values()) else None,
        partitions_complete=complete,
        offline_dirs=tuple(_offline_dirs(folded(answer.get("kafkabrokerstate")).get("offlinelogdirsbybrokerid"), ids)),
        facts=_facts(answer),
        notes=() if complete else ("only partitions in trouble are listed; counts per broker are whole",),
    )


def _counts(key: str, value: Any, row_counts: RowCounts) -> dict[int, int] | None:
    """Return counts by broker; None when the answer has none."""
    if not isinstance(value, dict):
        return None
    counts: dict[int, int] = {}
    for text, count in value.items():
        identity = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None
        fault = fault_of_number(identity, "a broker id") or fault_of_number(count, "the count", high=COUNT_MAX)
        if not fault and identity in counts:
            fault = f"broker {identity} is already listed"
        if fault or identity is None:
            row_counts.reject(f"{key}: {fault}", brief({text[:100]: count}))
            continue
        counts[identity] = count
        row_counts.rows_analysed += 1
    return counts


def _offline_dirs(value: Any, ids: list[int]) -> Iterator[tuple[BrokerId, str]]:
    """Yield the offline log directories of the brokers listed."""
    for number in ids:
        paths = value.get(str(number)) if isinstance(value, dict) else None
        for path in paths if isinstance(paths, list) else ():
            if (shown := plain(path, PATH_LENGTH_MAX)) is not None:
                yield BrokerId(number), shown


def _listed_replicas(table: PartitionTable, ids: list[int]) -> list[int]:
    held = table.replicas[table.replicas >= 0]
    listed = np.bincount(np.searchsorted(np.array(ids, dtype=np.int64), held), minlength=len(ids))
    return [int(count) for count in listed]


def _facts(answer: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    summary = folded(answer.get("kafkabrokerstate")).get("summary")
    if not isinstance(summary, dict):
        return ()
    return tuple(
        (f"summary {plain(key, 80)}", brief(item)[:80])
        for key, item in summary.items()
        if isinstance(item, int | float | str)
    )
