"""Parse one line of `kafka-topics --describe` with every check.

A line is words between blanks (every byte up to 0x20). A word ``Name:`` opens a field, the next word is its value,
which may also be glued to the colon (Kafka ≤ 2.x printed ``Topic:old``) or be absent. ``Configs:`` takes the rest of
the line but for ``MarkedForDeletion: true`` at its end; a new pair starts only at ``,name=``, as values contain commas
and JSON.

A line belongs to a describe when it starts with ``Topic:`` or names at least two fields of a describe; such a line is
damaged if it does not parse, and so is the one with which kafka-topics ends early. Unknown fields are skipped, so that
the lines of a later Kafka are still read.

Source: Kafka TopicCommand (0.8 to 4.3; ELR by KIP-966), Confluent Server's Offline, Observers and LiveObservers.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from broker.cluster import TopicView
from broker.ids import INT32_MAX, NO_LEADER
from broker.partition_faults import (
    PARTITION_ID_MAX,
    REPLICATION_FACTOR_MAX,
    fault_of_ids,
    fault_of_number,
    fault_of_row,
    fault_of_topic_name,
)
from placement.formats.rows import Row
from placement.spec import PARTITION_COUNT_MAX

_OURS: Final = re.compile(
    r"(?:^|(?<=[\x00-\x20]))(Topic|TopicId|PartitionCount|ReplicationFactor|Configs|Partition|Leader|Replicas|Isr):"
)
_BEGINS: Final = re.compile(r"[\x00-\x20]*topic:", re.IGNORECASE)
_TOOL_ERROR: Final = "Error while executing topic command"
_BLANKS: Final = re.compile(r"[\x00-\x20]+")
_FIELD: Final = re.compile(r"([A-Z][A-Za-z]*):(.*)", re.DOTALL)
_CONFIGS: Final = re.compile(r"(?:^|(?<=[\x00-\x20]))Configs:")
_NEXT_PAIR: Final = re.compile(r",(?=[A-Za-z][A-Za-z0-9._-]*=)")
_DIGITS: Final = re.compile(r"-?[0-9]{1,19}")
_MARK: Final = re.compile(r"(?:^|(?<=[\x00-\x20]))MarkedForDeletion:[\x00-\x20]*(true|false)[\x00-\x20]*$")
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]*")
TOPIC_ID_LENGTH_MAX: Final = 64  # Kafka's have 22 characters.
_LISTS: Final = {
    "Replicas": "replicas",
    "Isr": "isr",
    "Elr": "elr",
    "LastKnownElr": "last_known_elr",
    "Offline": "offline",
    "Observers": "observers",
    "LiveObservers": "observers",
    "Adding Replicas": "adding",
    "Removing Replicas": "removing",
}
LIST_FIELDS: Final = tuple(_LISTS.items())
_NAMES: Final = {
    name.lower(): name
    for name in (
        *("Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Partition", "Leader", *_LISTS),
        "MarkedForDeletion",
    )
}
# Longest first: "LastKnownElr:" is no "Elr:" that is glued to "LastKnown".
_ANY_NAME: Final = "|".join(sorted(_NAMES.values(), key=len, reverse=True))
_NAME: Final = re.compile(rf"(?:^|(?<=[\x00-\x20]))({_ANY_NAME}):", re.IGNORECASE)
_GLUED: Final = re.compile(rf"({_ANY_NAME}):")
_SETTINGS: Final = re.compile(r"Configs:", re.IGNORECASE)
_LIST: Final = re.compile(r":[\x00-\x20]*(?:\[[0-9, ]*\]|(?:[0-9]+(?:,[\x00-\x20]*[0-9]+)+))")
_ID: Final = re.compile(r"[0-9]+")
_REQUIRED: Final = ("Topic", "Partition", "Leader", "Replicas", "Isr")


@attrs.frozen
class Fault:
    """Report a damaged line of a describe, and the reason."""

    reason: str


@attrs.frozen
class TopicLine:
    """Hold a topic's own line: the topic's declaration."""

    topic: TopicView
    marked_for_deletion: bool = False


class _DamageError(Exception):
    """Carries a fault's reason to `parse_line`; never leaves this module."""


def is_ours(line: str) -> bool:
    """Return whether `line` looks like a line of a describe."""
    return _BEGINS.match(line) is not None or len({match[1] for match in _OURS.finditer(line)}) >= 2


def as_printed(line: str) -> str:
    """Return a line that begins with `Topic:` as kafka-topics prints it.

    Names of fields may be in another case, or glued to the value before them where tabs were lost; lists of ids may
    have blanks and brackets, as other tools print them.

    >>> as_printed("topic: a Partition: 0 leader: 2 Replicas: [2, 1] isr: 2")
    'Topic: a Partition: 0 Leader: 2 Replicas: 2,1  Isr: 2'
    >>> as_printed("Topic: aPartition: 0Leader: 2Replicas: 2,1Isr: 2")
    'Topic: a Partition: 0 Leader: 2 Replicas: 2,1  Isr: 2'
    """
    found = _SETTINGS.search(line)
    fields, configs = (line, "") if found is None else (line[: found.start()], line[found.end() :])
    if len(_NAME.findall(fields)) * 2 <= len(_GLUED.findall(fields)):  # Tabs were lost.
        fields = _GLUED.sub(r" \1:", fields).lstrip(" ")
    fields = _LIST.sub(lambda ids: f": {','.join(_ID.findall(ids[0]))} ", fields)
    fields = _NAME.sub(lambda name: f"{_NAMES[name[1].lower()]}:", fields)
    return fields.rstrip() + ("" if found is None else f" Configs:{configs}")


def parse_line(line: str, number: int = 0) -> TopicLine | Row | Fault | None:
    """Return the content of line `number`, a Fault if it is damaged, None when it is no describe line. Never raise."""
    if line.startswith(_TOOL_ERROR):
        return Fault("kafka-topics stopped here with an error; what it would have printed after this is missing")
    if not is_ours(line):
        return None
    if _BEGINS.match(line):
        line = as_printed(line)
    try:
        configs = _CONFIGS.search(line)
        fields = _fields(line if configs is None else line[: configs.start()])
        if "Topic" not in fields:
            raise _DamageError("the field Topic is missing")
        if fault := fault_of_topic_name(fields["Topic"]):
            raise _DamageError(fault)
        if configs is None and not _is_topic_line(fields):
            return _partition_line(fields, number)
        return _topic_line(fields, "" if configs is None else line[configs.end() :])
    except _DamageError as damage:
        return Fault(str(damage))


def is_topic_id(text: str) -> bool:
    """Return whether `text` can be a topic id."""
    return len(text) <= TOPIC_ID_LENGTH_MAX and _TOPIC_ID.fullmatch(text) is not None


def _is_topic_line(fields: dict[str, str]) -> bool:
    return "Partition" not in fields and ("PartitionCount" in fields or "ReplicationFactor" in fields)


def _fields(text: str) -> dict[str, str]:
    """Return the fields of a line by name; an absent value is an empty string."""
    fields: dict[str, str] = {}
    name = ""
    prefix = ""
    for word in _BLANKS.split(text):
        if not word:
            continue
        is_value = name in ("Topic", "TopicId") and not fields[name]  # A topic may be named "Adding".
        if word in ("Adding", "Removing") and not prefix and not is_value:
            prefix = word + " "
            continue
        field = _FIELD.fullmatch(word)
        if field is None:
            if not name or fields[name] or prefix:
                raise _DamageError(f"unexpected text {prefix + word[:40]!r}")
            fields[name] = word
            continue
        name, prefix = prefix + field[1], ""
        if name in fields:
            raise _DamageError(f"the field {name} stands twice")
        fields[name] = field[2]
    if prefix:
        raise _DamageError(f"unexpected text {prefix.strip()!r}")
    return fields


def _topic_line(fields: dict[str, str], configs_text: str) -> TopicLine:
    if "Partition" in fields:
        raise _DamageError("a partition's line has no Configs")
    topic_id = fields.get("TopicId", "")
    if not is_topic_id(topic_id):
        raise _DamageError(f"TopicId is {topic_id[:80]!r}; allowed are letters, digits, '_' and '-'")
    mark = _MARK.search(configs_text)
    configs = parse_configs(configs_text if mark is None else configs_text[: mark.start()])
    minimum = dict(configs).get("min.insync.replicas")
    topic = TopicView(
        name=fields["Topic"],
        partition_count=_optional(fields, "PartitionCount", PARTITION_COUNT_MAX),
        replication_factor=_optional(fields, "ReplicationFactor", REPLICATION_FACTOR_MAX),
        min_insync_replicas=None if minimum is None else _number(minimum, "min.insync.replicas", low=1),
        topic_id=topic_id or None,
        configs=configs,
    )
    return TopicLine(topic, _marked(fields) or (mark is not None and mark[1] == "true"))


def parse_configs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the key-value pairs of a Configs field, in the order printed."""
    text = _BLANKS.sub(" ", text).strip(" ")
    if not text:
        return ()
    pairs = [pair.partition("=") for pair in _NEXT_PAIR.split(text)]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise _DamageError(f"Configs has {name[:40]!r}; it holds pairs name=value")
    return tuple((name, value) for name, _, value in pairs)


def _partition_line(fields: dict[str, str], number: int) -> Row:
    for name in _REQUIRED:
        if name not in fields:
            raise _DamageError(f"the field {name} is missing")
    leader_text = fields["Leader"]
    leader = NO_LEADER if leader_text in ("none", "-1") else _number(leader_text, "Leader")
    lists: dict[str, tuple[int, ...]] = {}
    for name, column in LIST_FIELDS:
        if name not in fields or fields[name] == "N/A":
            continue
        if column in lists:
            raise _DamageError("both Observers and LiveObservers are given")
        lists[column] = _ids(fields[name], name)
    for name in ("replicas", "isr"):
        if name not in lists:
            raise _DamageError(f"{name.capitalize()} is 'N/A'; it is a list of broker ids")
    if fault := fault_of_row(leader, lists["replicas"], lists["isr"]):
        raise _DamageError(fault)
    return Row(
        line=number,
        topic=fields["Topic"],
        partition=_number(fields["Partition"], "Partition", high=PARTITION_ID_MAX),
        leader=leader,
        marked_for_deletion=_marked(fields),
        **lists,
    )


def _marked(fields: dict[str, str]) -> bool:
    return fields.get("MarkedForDeletion", "").lower() == "true"


def _optional(fields: dict[str, str], name: str, high: int) -> int | None:
    return _number(fields[name], name, high=high) if name in fields else None


def _number(text: str, what: str, *, high: int = INT32_MAX, low: int = 0) -> int:
    value = int(text) if _DIGITS.fullmatch(text) else text
    if fault := fault_of_number(value, what, high=high, low=low):
        raise _DamageError(fault)
    return int(value)


def _ids(text: str, name: str) -> tuple[int, ...]:
    if not text:
        return ()
    ids = tuple(_number(item, f"a broker id in {name}") for item in text.split(","))
    if fault := fault_of_ids(ids, name):
        raise _DamageError(fault)
    return ids
