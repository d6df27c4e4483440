"""Recognise output of Kafka's tools without replica placements, name it, and suggest the command to run instead.

Source: Kafka 4.3.1 tools: ConsumerGroupCommand, GetOffsetShell, MetadataQuorumCommand, ReassignPartitionsCommand.
"""

from __future__ import annotations

import re
from typing import Final

_LINES: Final = 20  # A tool's warnings may stand before its heading.
_LINES_PER_BLANK: Final = 3
INSTEAD: Final = "give what kafka-topics --describe prints"
_GROUPS: Final = f"which tells of a group's members and offsets and places no replica; {INSTEAD}"
_QUORUM: Final = f"which tells of voters and places no replica; {INSTEAD}, or the metadata log itself"
_MOVING: Final = f"which names reassignments without all replicas; {INSTEAD}, or the plan's JSON"
_PRINTED: Final = tuple(
    (re.compile(pattern), f"what {tool} prints, {sentence}")
    for pattern, tool, sentence in (
        (
            r"(BROKER +LEADER\(S\) +REPLICAS|HOST +BROKER +RACK |Brokers with replicas:|MonitorState: )",
            "Cruise Control",
            "as plain text; add json=true to what it is asked for, and verbose=true for all partitions",
        ),
        (r"(ID +\| +LEADER +\| +REPLICAS|NAME +\| +PARTITIONS +\| )", "topicctl", f"as a table; {INSTEAD}"),
        (r"(kind: KafkaTopic|apiVersion: kafka.strimzi.io)", "kubectl", f"of Strimzi's resources; {INSTEAD}"),
        (r"Name: +\S+$", "kaf or kafkactl", f"about a topic; {INSTEAD}"),
        (r"GROUP +TOPIC +PARTITION ", "kafka-consumer-groups --describe", _GROUPS),
        (r"GROUP +CONSUMER-ID ", "kafka-consumer-groups --describe --members", _GROUPS),
        (r"GROUP +COORDINATOR \(ID\) ", "kafka-consumer-groups --describe --state", _GROUPS),
        (r"Consumer group '.*' (has no active members|is rebalancing)\.", "kafka-consumer-groups --describe", _GROUPS),
        (r"[a-zA-Z0-9._-]{1,249}:\d{1,10}:-?\d*$", "kafka-get-offsets", f"which places no replica; {INSTEAD}"),
        (r"NodeId\s.*LogEndOffset\s", "kafka-metadata-quorum describe --replication", _QUORUM),
        (r"(LeaderEpoch|HighWatermark|CurrentVoters): ", "kafka-metadata-quorum describe --status", _QUORUM),
        (r"Status of partition reassignment:", "kafka-reassign-partitions --verify", _MOVING),
        (r"Current partition reassignments:", "kafka-reassign-partitions --list", _MOVING),
        (
            r"No partition reassignments found\.",
            "kafka-reassign-partitions --list",
            f"and says that none is under way; {INSTEAD}",
        ),
        (
            r"(None of the specified partition reassignments are active|"
            r"Successfully cancelled partition reassignments? for)",
            "kafka-reassign-partitions --cancel",
            f"and names what was cancelled; {INSTEAD}",
        ),
    )
)
_ID: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}( [a-zA-Z0-9._-]{1,249}){0,5}")  # More words are prose.


def what_is(text: str) -> str | None:
    """Return the name of a Kafka tool's output and the input to give instead; None for any other text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_LINES]
    return next((what for pattern, what in _PRINTED for line in lines if pattern.match(line)), None)


def is_list_of_names(text: str) -> bool:
    """Return whether a text is bare names, one a line, as kafka-topics --list prints.

    Ids of groups may have blanks, as kafka-consumer-groups --list prints them. Where more than a line in three has
    blanks it is prose.

    >>> is_list_of_names("audit-log\\norders\\n"), is_list_of_names("Topic: orders\\n")
    (True, False)
    >>> is_list_of_names("nightly\\nhourly\\nbilling group\\n"), is_list_of_names("Dear all\\nthanks\\n")
    (True, False)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_LINES]
    with_blanks = sum(" " in line for line in lines)
    return with_blanks * _LINES_PER_BLANK <= len(lines) > 0 and all(_ID.fullmatch(line) for line in lines)
