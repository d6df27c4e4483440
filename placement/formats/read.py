"""Read any known dump, recognised by its content, into a ParsedDump.

Documents that are recognised but describe no cluster (placement constraints, capacities, a topics-to-move list, …) are
refused with the name of what they are. `check_head` tells from the first 64 KiB that a file is of no known format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import attrs

from broker.errors import InputError, UsageError
from placement.formats import cruise_control, describe, kcat, reassign
from placement.formats.describe_line import is_ours
from placement.formats.documents import Document, Documents, brief, collect, find_documents, folded
from placement.formats.parsed import ParsedDump
from placement.formats.printed import is_list_of_names, what_is
from placement.formats.text import escaped, utf8_chunks

FORMATS: Final = (describe.FORMAT, kcat.FORMAT, reassign.FORMAT, cruise_control.FORMAT)
HEAD_BYTES: Final = 64 << 10  # Warnings that a tool prints before its answer fit in here.
_JSON_LINE: Final = re.compile(r"[\x00-\x20]*(\{|\[\s*([\[{\"\]]|$))")
_TO_MOVE: Final = "a list of topics to move, for kafka-reassign-partitions --generate; nothing is placed in it"
_NO_BROKERS: Final = (
    "a list of topics and partitions without brokers, as kcat -L -J prints it with its 'brokers', which are needed"
)
_OTHERS: Final = (
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
    head = _head(stream)
    whole = chain(head, stream)
    if format == describe.FORMAT or (format is None and not _is_json(b"".join(head))):
        try:
            return describe.read_describe(whole, source=source, name=title)
        except describe.NoDescribeError as error:
            what = what_is(escaped(b"".join(head)))
            if what is not None:
                raise InputError(f"this is {what}", source=source) from None
            if format is not None or error.line is None:
                raise
            listed = is_list_of_names(escaped(b"".join(head)))
            seems = (
                " but a list of names, such as kafka-topics --list or kafka-consumer-groups --list prints"
                if listed
                else ""
            )
            raise InputError(
                f"not a dump of a known format{seems}; known are {', '.join(known)}",
                source=source,
                line=error.line,
                value=error.value,
            ) from None
    return _read_json(whole, format, source, title, known)


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
    is_whole = len(head) < HEAD_BYTES
    plain = b"".join(utf8_chunks([head]))
    if format == describe.FORMAT or (format is None and not _is_json(plain)):
        if is_whole and not any(map(is_ours, escaped(plain).split("\n"))):
            read_dump([head], source=source, format=format, known=known)  # It has no line to parse, and raises.
    elif is_whole:
        _recognised(escaped(plain), format, source, known)


def _head(stream: Iterator[bytes]) -> list[bytes]:
    held: list[bytes] = []
    size_bytes = 0
    for chunk in stream:
        held.append(chunk)
        size_bytes += len(chunk)
        if size_bytes >= HEAD_BYTES:
            break
    return held


def _is_json(head: bytes) -> bool:
    for line in escaped(head[:HEAD_BYTES]).split("\n"):
        if _JSON_LINE.match(line):
            return True
        if is_ours(line):
            return False
    return False


def _read_json(chunks: Iterable[bytes], named: str | None, source: str, name: str, known: Sequence[str]) -> ParsedDump:
    kind, found = _recognised(collect(chunks, source=source), named, source, known)
    first = found.documents[0]
    if kind == reassign.FORMAT:
        dump = reassign.read_reassignment(found.documents, source=source, name=name)
    elif kind == kcat.FORMAT:
        dump = kcat.read_kcat(first, source=source, name=name)
    else:
        dump = cruise_control.read_cruise_control(first.value, source=source, name=name)
    return attrs.evolve(dump, lines_passed_over=found.lines_passed_over)


def _recognised(text: str, named: str | None, source: str, known: Sequence[str]) -> tuple[str, Documents]:
    """Return the format of the JSON documents in `text`, and the documents; raise InputError if there is none."""
    found = find_documents(text, source=source)
    if not found.documents:
        raise InputError("the input holds no JSON object", source=source)
    first, *others = found.documents
    kind = _kind(first.value) if named is None else named
    if kind is None or not _fits(kind, first.value):
        raise _unknown(first, kind, source, known)
    for document in others:
        if kind != reassign.FORMAT:
            raise InputError(f"a second document after one of {kind}", source=source, line=document.line)
        if not reassign.is_reassignment(document.value):
            raise _unknown(document, kind, source, known)
    return kind, found


def _kind(value: dict[str, Any]) -> str | None:
    return next((kind for kind in FORMATS[1:] if _fits(kind, value)), None)


def _fits(kind: str, value: dict[str, Any]) -> bool:
    if kind == kcat.FORMAT:
        return kcat.is_kcat(value)
    if kind == reassign.FORMAT:
        return reassign.is_reassignment(value)
    return cruise_control.is_cruise_control(value)


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
