"""Read any known dump, recognised by its content, into a ParsedDump.

Documents that are recognised but describe no cluster (placement constraints, capacities, a topics-to-move list, …) are
refused with the name of what they are. `check_head` tells from the first 64 KiB that a file is of no known format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from broker.errors import InputError, UsageError
from placement.formats import cruise_control, describe, kcat, one_topic, reassign, snapshot
from placement.formats.describe_line import is_ours
from placement.formats.documents import Document, Documents, brief, collect, find_documents, folded
from placement.formats.parsed import ParsedDump
from placement.formats.pasted import DESCRIBE, JSON, KCAT, TABLE, Cleaning, cleaned
from placement.formats.printed import INSTEAD, is_list_of_names, what_is
from placement.formats.text import escaped, utf8_chunks

FORMATS: Final = (
    *(describe.FORMAT, kcat.FORMAT, reassign.FORMAT, cruise_control.FORMAT),
    *(one_topic.ZOOKEEPER, one_topic.MSK, one_topic.RPK, snapshot.FORMAT),
)
_JSON: Final = "json"
HEAD_BYTES: Final = 64 << 10  # Warnings that a tool prints before its answer fit in here.
_JSON_LINE: Final = re.compile(r"[\x00-\x20]*(\{|\[\s*([\[{\"\]]|$))")
_JSON_INSIDE: Final = re.compile(r"\{\s*\\?[\"\u201c\u201d]")
_JSON_READERS: Final = {
    snapshot.FORMAT: (snapshot.is_snapshot, snapshot.read_snapshot),
    kcat.FORMAT: (kcat.is_kcat, kcat.read_kcat),
    one_topic.ZOOKEEPER: (one_topic.is_znode, one_topic.read_znode),
    one_topic.MSK: (one_topic.is_msk, one_topic.read_msk),
    reassign.FORMAT: (reassign.is_reassignment, reassign.read_reassignment),
    cruise_control.FORMAT: (cruise_control.is_cruise_control, cruise_control.read_cruise_control),
}
_TEXT_READERS: Final = {
    kcat.FORMAT: (kcat.TEXT_HEADING, KCAT, kcat.read_kcat_text),
    one_topic.RPK: (one_topic.RPK_HEADING, TABLE, one_topic.read_rpk),
}
"""Formats of text that is read whole: what a line of it begins with, its rows, and its reader."""
_TO_MOVE: Final = "a list of topics to move, for kafka-reassign-partitions --generate; nothing is placed in it"
_NO_BROKERS: Final = (
    "a list of topics and partitions without brokers, as kcat -L -J prints it with its 'brokers', which are needed"
)
_OTHERS: Final = (
    ({"topicname", "partitions"}, f"Redpanda Console's answer about a topic; {INSTEAD}, or rpk topic describe -p"),
    ({"name", "partitions", "isinternal"}, f"Kafka UI's answer about a topic; {INSTEAD}"),
    ({"name", "partitions"}, f"what kafkactl prints about a topic; {INSTEAD}"),
    ({"kind", "data"}, f"an answer of Confluent's REST API; {INSTEAD}"),
    ({"apiversion", "kind"}, f"a resource of Kubernetes; {INSTEAD}"),
    ({"isr", "leader", "controllerepoch"}, f"the state of one partition in ZooKeeper; {INSTEAD}"),
    ({"replicas"}, "a Confluent placement constraint, for kafka-topics --replica-placement; nothing is placed in it"),
    ({"topics"}, _TO_MOVE),
    ({"brokercapacities"}, "Cruise Control's capacity file; nothing is placed in it"),
    ({"brokersets"}, "Cruise Control's broker sets; nothing is placed in it"),
    ({"records"}, "Cruise Control's /partition_load, which lists no replicas in order; give it as sizes of a dump"),
    (
        {"brokers"},
        "a list of brokers without counts of replicas; give kafka-log-dirs' answer as sizes of a dump, with --sizes",
    ),
)


def read_dump(
    chunks: Iterable[bytes],
    *,
    source: str,
    format: str | None = None,  # noqa: A002 - the field's word, and the command line's.
    name: str | None = None,
    known: Sequence[str] = FORMATS,
) -> ParsedDump:
    """Return the clusters that the bytes of one file describe.

    `source` names the file in errors and rejects; `name` is the cluster's, or `source`; `format` is one
    of FORMATS, or None to recognise it; `known` are the formats that an error lists, of a caller who reads more than
    these. Raises InputError for a file of no known format or in which nothing can be used, UsageError for an unknown
    `format`. Text is read in one pass and bounded memory.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"format is {format!r}; allowed are {', '.join(FORMATS)}")
    title = source if name is None else name
    stream = utf8_chunks(chunks)
    held = _head(stream)
    head, whole = escaped(b"".join(held)[:HEAD_BYTES]), chain(held, stream)
    kind = _kind_of_text(head, format)
    if kind in _TEXT_READERS:
        _, rows, read = _TEXT_READERS[kind]
        return read(cleaned(collect(whole, source=source), rows), source=source, name=title)
    if kind == describe.FORMAT:
        return _read_describe(whole, head, format, source, title, known)
    text = collect(whole, source=source)
    try:
        return _read_json(text, format, source, title, known)
    except InputError:
        # Log lines in JSON may stand before a describe.
        if format is not None or not _has_describe(head):
            raise
    return _read_describe([text.encode()], head, format, source, title, known)


def check_head(
    head: bytes,
    *,
    source: str,
    format: str | None = None,  # noqa: A002 - as in read_dump.
    known: Sequence[str] = FORMATS,
) -> None:
    """Raise the InputError of `read_dump` for a file that begins with `head` and is of no known format.

    `head` is the whole file, or its first `HEAD_BYTES` bytes; a head that does not decide is accepted. Only the
    format is recognised: no partition is parsed.
    """
    if len(head) >= HEAD_BYTES:
        return
    text = escaped(b"".join(utf8_chunks([head])))
    if format is None and _has_describe(text):
        return
    kind = _kind_of_text(text, format)
    if kind == describe.FORMAT:
        read_dump([head], source=source, format=format, known=known)  # It has no line to parse, and raises.
    elif kind not in _TEXT_READERS:
        _recognised(text, format, source, known)


def _head(stream: Iterator[bytes]) -> list[bytes]:
    held: list[bytes] = []
    size_bytes = 0
    for chunk in stream:
        held.append(chunk)
        size_bytes += len(chunk)
        if size_bytes >= HEAD_BYTES:
            break
    return held


def _has_describe(head: str) -> bool:
    return any(map(is_ours, cleaned(head, DESCRIBE).split("\n")))


def _kind_of_text(head: str, named: str | None) -> str:
    """Return the format of a text by its first lines: "kafka-topics", one of `_TEXT_READERS`, or "json".

    Of a text of no known format it is "kafka-topics". `named` is the format that the caller asks for.
    """
    found = _first_kind(head)
    if named is not None and found != named:  # One that is named for text, or for JSON.
        return named if named in (describe.FORMAT, one_topic.RPK) else _JSON
    return found or describe.FORMAT


def _first_kind(head: str) -> str | None:
    for line in cleaned(head, DESCRIBE).split("\n"):
        if _JSON_LINE.match(line):
            return _JSON
        if is_ours(line):
            return describe.FORMAT
    for kind, (heading, rows, _) in _TEXT_READERS.items():
        if any(map(heading.match, cleaned(head, rows).split("\n"))):
            return kind
    is_json = _JSON_INSIDE.search(head) or any(map(_JSON_LINE.match, cleaned(head, JSON).split("\n")))
    return _JSON if is_json else None


def _read_describe(
    chunks: Iterable[bytes], head: str, named: str | None, source: str, name: str, known: Sequence[str]
) -> ParsedDump:
    """Return the cluster of a describe; raise InputError that says what a text without one is."""
    cleaning = Cleaning.of(head, DESCRIBE)
    text = cleaning.chunks(chunks) if cleaning.is_needed else chunks
    try:
        return describe.read_describe(text, source=source, name=name)
    except describe.NoDescribeError as error:
        what = what_is(head) or what_is(cleaned(head, TABLE))
        if what is not None:
            raise InputError(f"this is {what}", source=source) from None
        if named is not None or error.line is None:
            raise
        listed = is_list_of_names(head)
        seems = (
            " but a list of names, such as kafka-topics --list or kafka-consumer-groups --list prints" if listed else ""
        )
        what = f"not a dump of a known format{seems}; known are {', '.join(known)}"
        raise InputError(what, source=source, line=error.line, value=error.value) from None


def _read_json(text: str, named: str | None, source: str, name: str, known: Sequence[str]) -> ParsedDump:
    kind, found = _recognised(text, named, source, known)
    _, read = _JSON_READERS[kind]
    return read(found, source=source, name=name)


def _recognised(text: str, named: str | None, source: str, known: Sequence[str]) -> tuple[str, Documents]:
    """Return the format of the JSON documents in `text`, and the documents; raise InputError if there is none."""
    found = find_documents(text, source=source).known(lambda value: _kind(value) is not None)
    if not found.documents:
        raise InputError("the input holds no JSON object", source=source)
    first, *others = found.documents
    kind = _kind(first.value) if named is None else named
    if kind is None or not _JSON_READERS[kind][0](first.value):
        if what := what_is(text[:HEAD_BYTES]):
            raise InputError(f"this is {what}", source=source)
        raise _unknown(first, kind, source, known)
    for document in others:
        if kind != reassign.FORMAT:
            raise InputError(f"a second document after one of {kind}", source=source, line=document.line)
        if not reassign.is_reassignment(document.value):
            raise _unknown(document, kind, source, known)
    return kind, found


def _kind(value: dict[str, Any]) -> str | None:
    return next((kind for kind, (fits, _) in _JSON_READERS.items() if fits(value)), None)


def _unknown(document: Document, kind: str | None, source: str, known: Sequence[str]) -> InputError:
    keys = folded(document.value).keys()
    what = next((sentence for needed, sentence in _OTHERS if needed <= keys), None)
    if "topics" in keys and what == _TO_MOVE:
        what = _of_topics(folded(document.value)["topics"])
    if what is not None:
        return InputError(f"this is {what}", source=source, line=document.line)
    expected = f"known are {', '.join(known)}" if kind is None else f"it was to be {kind}"
    return InputError(
        f"a JSON object of no known format; {expected}", source=source, line=document.line, value=brief(document.value)
    )


def _of_topics(topics: Any) -> str | None:
    """Return the kind of file by its `topics`, where nothing else shows it; None for an unknown kind."""
    if not isinstance(topics, list) or not all(isinstance(topic, dict) for topic in topics):
        return None
    keys = [set(folded(topic)) for topic in topics]
    if all(of == {"topic"} for of in keys):
        return _TO_MOVE
    return _NO_BROKERS if all({"topic", "partitions"} <= of for of in keys) else None
