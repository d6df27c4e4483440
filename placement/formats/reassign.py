"""Read and write the JSON of kafka-reassign-partitions.

Entries that Kafka's tool refuses are rejected with their reason: broker ids as text, a list for a topic, an empty list
of replicas, more or fewer log_dirs than replicas.

Source: Kafka 4.3.1 ReassignPartitionsCommand (formatAsReassignmentJson, parsePartitionReassignmentData).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from broker.errors import InputError
from broker.java.string_hash import java_string_key
from broker.wording import counted
from placement.formats.documents import Document, Documents, brief
from placement.formats.entries import Entry, EntryRows
from placement.formats.parsed import ParsedDump
from placement.formats.rows import PartitionRows
from placement.spec import Assignment

FORMAT: Final = "kafka-reassign-partitions"
_KEYS: Final = frozenset({"partition", "replicas", "log_dirs"})
_LOOKED_AT: Final = 100


def is_reassignment(value: dict[str, Any]) -> bool:
    """Return whether an object is a reassignment: entries with a topic, or damaged ones."""
    partitions = value.get("partitions")
    return isinstance(partitions, list) and (not partitions or not all(map(_is_foreign, partitions[:_LOOKED_AT])))


def _is_foreign(entry: Any) -> bool:
    """Return whether an entry is of another tool, which lists the partitions of one topic."""
    return isinstance(entry, dict) and "topic" not in entry and bool(entry.keys() - _KEYS)


def read_reassignment(found: Documents, *, source: str, name: str) -> ParsedDump:
    """Return one cluster per document; raise InputError if no entry can be used."""
    documents = found.documents
    row_counts = found.row_counts(source, FORMAT)
    clusters = []
    for number, document in enumerate(documents):
        prefix = "" if len(documents) == 1 else f"document {number + 1}, "
        check_version(document, source)
        entries = EntryRows(row_counts, PartitionRows(source))
        named_dirs: list[str] = []

        def add(place: str, raw: Any, entries: EntryRows = entries, named: list[str] = named_dirs) -> None:
            entry, dirs = entry_of(place, raw)
            if entries.add(entry) and dirs:
                named.append(place)

        entries.add_reassignments(prefix, _list(document), add)
        closed = entries.close()
        named = f"{counted(len(named_dirs), 'partition')} with log directories, which are not kept"
        notes = (named,) if named_dirs else ()
        if not closed.table.count:
            continue
        row_counts.notes.extend(notes)
        clusters.append(entries.view_of(closed, name + _suffix(documents, number), notes=notes))
    return row_counts.dump(tuple(clusters))


def _list(document: Document) -> list[Any]:
    partitions = document.value["partitions"]
    assert isinstance(partitions, list), type(partitions)  # is_reassignment has checked it.
    return partitions


def check_version(document: Document, source: str) -> None:
    """Raise InputError unless the document's version is 1 or not given."""
    version = document.value.get("version", 1)
    if isinstance(version, bool) or version != 1:
        raise InputError(
            "the reassignment's version is not 1, the only one there is",
            source=source,
            line=document.line,
            value=brief(version),
        )


def _suffix(documents: tuple[Document, ...], number: int) -> str:
    if len(documents) == 1:
        return ""
    caption = documents[number].caption.lower()
    for word in ("current", "proposed"):
        if word in caption:
            return f" ({word})"
    return f" (document {number + 1})"


def entry_of(place: str, raw: Any) -> tuple[Entry, Sequence[str]]:
    """Return one entry, and its log directories where it names one."""
    item = raw if isinstance(raw, dict) else {}
    dirs, replicas = item.get("log_dirs"), item.get("replicas")
    fault = None if dirs is None else _fault_of_dirs(dirs, replicas)
    entry = Entry(place, raw, item.get("topic"), item.get("partition"), replicas, fault=fault)
    return entry, () if dirs is None or fault or dirs.count("any") == len(dirs) else dirs


def _fault_of_dirs(dirs: Any, replicas: Any) -> str | None:
    """Return why `dirs` cannot be the log directories of `replicas`, or None."""
    if not isinstance(dirs, list) or not isinstance(replicas, list) or len(dirs) != len(replicas):
        return "log_dirs is not a list as long as replicas"
    if dirs.count("any") == len(dirs) or all(
        isinstance(path, str) and (path == "any" or path.startswith("/")) for path in dirs
    ):
        return None
    return 'log_dirs holds something other than "any" and absolute paths'


def write_reassignment(assignment: Assignment, dirs: Mapping[tuple[int, int], str] | None = None) -> str:
    """Return `assignment` as kafka-reassign-partitions prints it, by topic and partition: one line, no newline.

    `dirs` names the log directory of a row's replica on a broker, where it is not "any".
    """
    keys = [java_string_key(name) for name in assignment.topics]
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    names, targets = [json.dumps(name) for name in assignment.topics], assignment.replicas.tolist()
    index, numbers = assignment.topic_index.tolist(), assignment.partition_ids.tolist()
    partitions = []
    # Text is joined by hand: a million rows take a quarter of the time that json.dumps takes.
    for row in np.lexsort((assignment.partition_ids, ranks[assignment.topic_index])).tolist():
        replicas = [broker for broker in targets[row] if broker >= 0]
        paths = ",".join(json.dumps(dirs.get((row, broker), "any")) if dirs else '"any"' for broker in replicas)
        listed = ",".join(map(str, replicas))
        partitions.append(
            f'{{"topic":{names[index[row]]},"partition":{numbers[row]},"replicas":[{listed}],"log_dirs":[{paths}]}}'
        )
    return f'{{"version":1,"partitions":[{",".join(partitions)}]}}'
