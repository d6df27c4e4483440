"""Read `kcat -L -J` (formerly kafkacat): a cluster's metadata as one JSON object.

It carries no rack, no setting of a topic and no offline list; a replica on a broker that is not listed tells that the
broker is away. Source: edenhill/kcat json.c, metadata_print_json.
"""

from __future__ import annotations

from typing import Any, Final

from broker.cluster import BrokerView, ClusterView, TopicView
from broker.ids import BrokerId
from placement.formats.checks import fault_of_number
from placement.formats.documents import Document, brief, plain
from placement.formats.entries import Entry, EntryRows
from placement.formats.parsed import ParsedDump, RowCounts, first_few
from placement.formats.rows import PartitionRows

FORMAT: Final = "kcat"


def is_kcat(value: dict[str, Any]) -> bool:
    """Return whether an object is kcat's metadata."""
    topics = value.get("topics")
    return isinstance(topics, list) and ("originating_broker" in value or "brokers" in value or "query" in value)


def read_kcat(document: Document, *, source: str, name: str) -> ParsedDump:
    """Return the cluster of one kcat document; raise InputError if no part of it can be used."""
    row_counts = RowCounts(source, FORMAT)
    entries = EntryRows(row_counts, PartitionRows(source))
    brokers = _brokers(document.value.get("brokers"), row_counts)
    errors: list[str] = []
    for number, topic in enumerate(document.value["topics"]):
        _read_topic(f"topics[{number}]", topic, entries, errors)
    closed = entries.close()
    row_counts.notes.extend(first_few(errors))
    alive = {broker.id for broker in brokers}
    away = [broker for broker in closed.table.broker_ids().tolist() if broker not in alive]
    if brokers:
        row_counts.notes.extend(
            first_few([f"broker {broker} holds replicas but is not in the list of brokers" for broker in away])
        )
    view = ClusterView.build(
        name=name,
        source=source,
        format=FORMAT,
        partitions=closed.table,
        brokers=brokers,
        topics=tuple(TopicView(topic) for topic in entries.rows.topics),
        partitions_complete=_asked_for_all(document.value.get("query")),
        facts=_facts(document.value),
        notes=tuple(row_counts.notes),
    )
    return row_counts.dump((view,))


def _asked_for_all(query: Any) -> bool:
    return not isinstance(query, dict) or query.get("topic", "*") == "*"


def _brokers(value: Any, row_counts: RowCounts) -> list[BrokerView]:
    found: dict[int, BrokerView] = {}
    for number, item in enumerate(value if isinstance(value, list) else []):
        identity = item.get("id") if isinstance(item, dict) else None
        fault = fault_of_number(identity, "id")
        if not fault and identity in found:
            fault = f"broker {identity} is already listed"
        if fault or not isinstance(identity, int):
            row_counts.reject(f"brokers[{number}]: {fault}", brief(item))
            continue
        found[identity] = BrokerView(id=BrokerId(identity), host=plain(item.get("name")))
        row_counts.rows_analysed += 1
    return [found[identity] for identity in sorted(found)]


def _read_topic(place: str, topic: Any, entries: EntryRows, errors: list[str]) -> None:
    if not isinstance(topic, dict) or not isinstance(topic.get("partitions"), list):
        entries.row_counts.reject(f"{place}: a topic is an object with a list of partitions", brief(topic))
        return
    if topic.get("error") is not None:
        errors.append(f"{place}: kcat reports {brief(topic['error'])[:120]!r}")
    for number, raw in enumerate(topic["partitions"]):
        item = raw if isinstance(raw, dict) else {}
        entries.add(
            Entry(
                place=f"{place}.partitions[{number}]",
                raw=raw,
                topic=topic.get("topic"),
                partition=item.get("partition"),
                replicas=_ids(item.get("replicas")),
                has_leader=True,
                leader=item.get("leader"),
                isr=_ids(item.get("isrs", "missing")),
                isr_name="isrs",
            )
        )


def _ids(value: Any) -> Any:
    """Return the ids in a list of objects; a value of another shape is returned for the checks to report."""
    if not isinstance(value, list):
        return value
    return [item.get("id") if isinstance(item, dict) else item for item in value]


def _facts(value: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    origin = value.get("originating_broker")
    facts = [
        ("controller", value.get("controllerid")),
        ("answered by", origin.get("name") if isinstance(origin, dict) else None),
    ]
    return tuple((key, brief(item)[:200]) for key, item in facts if isinstance(item, str | int))
