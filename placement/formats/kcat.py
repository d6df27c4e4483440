"""Read `kcat -L` (formerly kafkacat): a cluster's metadata, as text or with -J as one JSON object.

It carries no rack, no setting of a topic and no offline list; a replica on a broker that is not listed tells that the
broker is away. Source: edenhill/kcat json.c, metadata_print_json.
"""

from __future__ import annotations

import re
from typing import Any, Final

from broker.cluster import BrokerView
from broker.ids import BrokerId
from broker.partition_faults import fault_of_number
from placement.formats.documents import Documents, brief, plain
from placement.formats.entries import Entry, EntryRows
from placement.formats.parsed import ParsedDump, RowCounts, first_few
from placement.formats.rows import PartitionRows

FORMAT: Final = "kcat"
ALL_TOPICS: Final = "*"
TEXT_HEADING: Final = re.compile(r"\s*Metadata for (all topics|\S+) \(from broker \S+ ([^)]*)\):")
_HEAD_LINE: Final = re.compile(r"\s*[0-9]{1,9} (?:brokers|topics):\s*")
_BROKER_LINE: Final = re.compile(r"\s*broker ([0-9]{1,10}) at (\S+)( \(controller\))?\s*")
_TOPIC_LINE: Final = re.compile(r"\s*topic \"([^\"]*)\" with [0-9]{1,9} partitions:(.*)")
_IDS: Final = r"((?:[0-9]{1,10}(?:,\s*[0-9]{1,10})*)?)"
_PARTITION_LINE: Final = re.compile(
    rf"\s*partition ([0-9]{{1,10}}), leader (-?[0-9]{{1,10}}), replicas: {_IDS}\s*, isrs: {_IDS}\s*(?:, .*)?"
)


def is_kcat(value: dict[str, Any]) -> bool:
    """Return whether an object is kcat's metadata."""
    topics = value.get("topics")
    return isinstance(topics, list) and ("originating_broker" in value or "brokers" in value or "query" in value)


def read_kcat(found: Documents, *, source: str, name: str) -> ParsedDump:
    """Return the cluster of one kcat document; raise InputError if no part of it can be used."""
    value = found.documents[0].value
    row_counts = found.row_counts(source, FORMAT)
    entries = EntryRows(row_counts, PartitionRows(source))
    brokers = _brokers(value.get("brokers"), row_counts)
    errors: list[str] = []
    for number, topic in enumerate(value["topics"]):
        _read_topic(f"topics[{number}]", topic, entries, errors)
    return _dump(entries, brokers, errors, name, _facts(value), is_whole=_asked_for_all(value.get("query")))


def read_kcat_text(text: str, *, source: str, name: str) -> ParsedDump:
    """Return the cluster that `kcat -L` prints as text; raise InputError if no line of it can be used."""
    row_counts = RowCounts(source, FORMAT)
    entries = EntryRows(row_counts, PartitionRows(source))
    brokers: dict[int, BrokerView] = {}
    errors, facts, topic, is_whole = list[str](), list[tuple[str, str]](), "", False
    for number, line in enumerate(text.split("\n"), start=1):
        if heading := TEXT_HEADING.match(line):
            facts.append(("answered by", heading[2]))
            is_whole = heading[1] == "all topics"
        elif broker := _BROKER_LINE.fullmatch(line):
            identity = int(broker[1])
            if fault_of_number(identity, "id") or identity in brokers:
                row_counts.reject(f"broker {broker[1]} is listed already, or is no broker id", line, line=number)
                continue
            brokers[identity] = BrokerView(id=BrokerId(identity), host=plain(broker[2]))
            row_counts.rows_analysed += 1
            facts += [("controller", broker[1])] if broker[3] else []
        elif named := _TOPIC_LINE.fullmatch(line):
            topic = named[1]
            errors += [f"topic {topic}: kcat reports {named[2][:120]!r}"] if named[2] else []
        elif row := _PARTITION_LINE.fullmatch(line):
            entries.add(_text_entry(row, topic, number))
        elif _HEAD_LINE.fullmatch(line) is None and line.strip():
            row_counts.pass_over(number, line)
    in_order = [brokers[identity] for identity in sorted(brokers)]
    return _dump(entries, in_order, errors, name, tuple(facts), is_whole=is_whole)


def _text_entry(row: re.Match[str], topic: str, line: int) -> Entry:
    replicas, isr = ([int(each) for each in row[group].split(",") if each.strip()] for group in (3, 4))
    return Entry(
        place="",
        raw=row[0].strip(),
        topic=topic,
        partition=int(row[1]),
        replicas=replicas,
        has_leader=True,
        leader=int(row[2]),
        isr=isr,
        isr_name="isrs",
        line=line,
    )


def _dump(
    entries: EntryRows,
    brokers: list[BrokerView],
    errors: list[str],
    name: str,
    facts: tuple[tuple[str, str], ...],
    *,
    is_whole: bool,
) -> ParsedDump:
    row_counts, closed = entries.row_counts, entries.close()
    row_counts.notes.extend(first_few(errors))
    alive = {broker.id for broker in brokers}
    away = [broker for broker in closed.table.broker_ids().tolist() if broker not in alive]
    if brokers:
        row_counts.notes.extend(
            first_few([f"broker {broker} holds replicas but is not in the list of brokers" for broker in away])
        )
    view = entries.view_of(closed, name, brokers=brokers, partitions_complete=is_whole, facts=facts)
    return row_counts.dump((view,))


def _asked_for_all(query: Any) -> bool:
    return not isinstance(query, dict) or query.get("topic", "*") == "*"


def _brokers(value: Any, row_counts: RowCounts) -> list[BrokerView]:
    found: dict[int, BrokerView] = {}
    for number, item in enumerate(value if isinstance(value, list) else []):
        identity = item.get("id") if isinstance(item, dict) else None
        fault = fault_of_number(identity, "id")
        is_repeat = not fault and identity in found
        if is_repeat:
            fault = f"broker {identity} is already listed"
        if fault or not isinstance(identity, int):
            row_counts.reject(f"brokers[{number}]: {fault}", brief(item), is_repeat=is_repeat)
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
