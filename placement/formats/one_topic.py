"""Read what other tools than Kafka's print about one topic: ZooKeeper's znode, MSK's answer, rpk's table.

The first two do not name their topic, and rpk's table does only with a summary; the input's name stands for it, with a
note. rpk prints no ISR.

Source: Kafka 2.8 TopicZNode; aws kafka describe-topic-partitions; Redpanda's rpk topic describe --print-partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from broker.partition_faults import fault_of_topic_name
from placement.formats.documents import Documents, folded
from placement.formats.entries import Entry, EntryRows
from placement.formats.parsed import ParsedDump, RowCounts
from placement.formats.rows import PartitionRows

ZOOKEEPER: Final = "zookeeper"
MSK: Final = "aws-kafka"
RPK: Final = "rpk"
RPK_HEADING: Final = re.compile(r"\s*PARTITION\s+LEADER\s+(?:[A-Z-]+\s+)*REPLICAS\b")
_RPK_NAME: Final = re.compile(r"\s*NAME\s+(\S+)\s*$")
_CELL: Final = re.compile(r"\[[^\[\]]*\]|\S+")
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")
_NAMELESS: Final = "topic"


def is_znode(value: dict[str, Any]) -> bool:
    """Return whether an object is a topic's znode: partitions by number."""
    partitions = value.get("partitions")
    return isinstance(partitions, dict) and bool(partitions) and all(_NUMBER.fullmatch(name) for name in partitions)


def is_msk(value: dict[str, Any]) -> bool:
    """Return whether an object is MSK's list of a topic's partitions, whose entries name no topic."""
    partitions = folded(value).get("partitions")
    if not isinstance(partitions, list) or not partitions:
        return False
    keys = [folded(each).keys() for each in partitions]
    return not any("topic" in each for each in keys) and any(each >= {"partition", "leader", "isr"} for each in keys)


def read_znode(found: Documents, *, source: str, name: str) -> ParsedDump:
    """Return the cluster of a topic's znode; raise InputError if no partition of it can be used."""
    value = found.documents[0].value
    moving = {key: value.get(f"{key}_replicas") for key in ("adding", "removing")}
    given = {key: found if isinstance(found, dict) else {} for key, found in moving.items()}
    topic, notes = _topic_of(name, "the znode")
    entries = (
        Entry(
            place=f"partitions.{number}",
            raw={number: replicas},
            topic=topic,
            partition=int(number),
            replicas=replicas,
            adding=given["adding"].get(number),
            removing=given["removing"].get(number),
        )
        for number, replicas in value["partitions"].items()
    )
    return _read(entries, found.row_counts(source, ZOOKEEPER, notes), name)


def read_msk(found: Documents, *, source: str, name: str) -> ParsedDump:
    """Return the cluster of MSK's answer; raise InputError if no partition of it can be used."""
    answer = folded(found.documents[0].value)
    topic, notes = _topic_of(name, "the answer")
    is_whole = answer.get("nexttoken") is None
    if not is_whole:
        notes.append("the answer has a nextToken: further pages list the topic's other partitions")
    rows = ((f"partitions[{number}]", raw, folded(raw)) for number, raw in enumerate(answer["partitions"]))
    entries = (
        Entry(
            place=place,
            raw=raw,
            topic=topic,
            partition=item.get("partition"),
            replicas=item.get("replicas"),
            has_leader=True,
            leader=item.get("leader"),
            isr=item.get("isr", "missing"),
        )
        for place, raw, item in rows
    )
    return _read(entries, found.row_counts(source, MSK, notes), name, is_whole=is_whole)


def read_rpk(text: str, *, source: str, name: str) -> ParsedDump:
    """Return the cluster of rpk's tables of partitions; raise InputError if no row of them can be used."""
    counts = RowCounts(source, RPK)
    return _read(_rpk_entries(text, counts, name), counts, name)


def _rpk_entries(text: str, counts: RowCounts, name: str) -> Iterator[Entry]:
    columns: Sequence[str] = ()
    topic: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        cells = _CELL.findall(line)
        if named := _RPK_NAME.match(line):
            topic, columns = named[1], ()
        elif RPK_HEADING.match(line):
            columns = cells
            if topic is None:
                topic, notes = _topic_of(name, "the table")
                counts.notes += notes
        elif cells and columns and _NUMBER.fullmatch(cells[0]):
            row = dict(zip(columns, cells, strict=False))
            yield Entry(
                place="",
                raw=line.strip(),
                topic=topic,
                partition=_number(row.get("PARTITION")),
                replicas=[_number(each) for each in row.get("REPLICAS", "").strip("[]").split()],
                has_leader=True,
                leader=_number(row.get("LEADER")),
                line=number,
                fault=None if len(cells) >= len(columns) else f"{len(cells)} cells under {len(columns)} headings",
            )
        elif line.strip():
            columns = ()
            counts.pass_over(number, line)


def _read(entries: Iterable[Entry], counts: RowCounts, name: str, *, is_whole: bool = True) -> ParsedDump:
    rows = EntryRows(counts, PartitionRows(counts.source))
    for entry in entries:
        rows.add(entry)
    closed = rows.close()
    view = rows.view_of(closed, name, partitions_complete=is_whole)
    return counts.dump((view,) if closed.table.count else ())


def _topic_of(name: str, what: str) -> tuple[str, list[str]]:
    """Return the name of a topic that its dump does not name, and a note that says so."""
    topic = _NAMELESS if fault_of_topic_name(name) else name
    return topic, [f"{what} does not name its topic, which is called {topic} here"]


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else text
