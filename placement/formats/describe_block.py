"""Read the common lines of a block of `kafka-topics --describe` into columns with one regular expression.

It gives the same rows as describe_line, or none: a line that the pattern does not match, or whose lists cannot describe
one partition, is returned for describe_line. Configs and the fields behind Isr are parsed by describe_line itself, once
for each distinct text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, Int32Array, TopicView
from broker.ids import NO_LEADER
from placement.formats.describe_line import LIST_FIELDS, TopicLine, parse_line
from placement.formats.rows import Chunk, PartitionRows, Row, padded
from placement.formats.text import escaped

_GAP: Final = r"[\x00-\x09\x0b-\x20]{1,16}"
_IDS: Final = r"[0-9]{1,9}(?:,[0-9]{1,9}){0,7}"
_LINE: Final = re.compile(
    r"^(?:(?:GAP)?Topic:(?:GAP)?(?!\.{1,2}[\x00-\x20])([A-Za-z0-9._-]{1,249})GAP(?:"
    r"Partition:(?:GAP)?([0-9]{1,7})GAPLeader:(?:GAP)?([0-9]{1,9}|none|-1)GAP"
    r"Replicas:(?:GAP)?(IDS)GAPIsr:(?:GAP)?((?:IDS)?)((?:[\x00-\x09\x0b-\x20].{0,2000})?)"
    r"|(?:TopicId:(?:GAP)?([A-Za-z0-9_-]{1,64})GAP)?PartitionCount:(?:GAP)?([0-9]{1,7})GAP"
    r"ReplicationFactor:(?:GAP)?([0-9]{1,4})GAPConfigs:(.{0,8192}))|.*)$".replace("GAP", _GAP).replace("IDS", _IDS),
    re.MULTILINE,
)
_BEFORE_TAIL: Final = "Topic: a\tPartition: 0\tLeader: none\tReplicas: 0\tIsr:"
_BEFORE_CONFIGS: Final = "Topic: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: "
_TAIL_LISTS: Final = tuple(dict.fromkeys(column for _, column in LIST_FIELDS if column not in ("replicas", "isr")))


def read_block(
    data: bytes, first_line: int, rows: PartitionRows, declared: list[tuple[int, TopicView]]
) -> tuple[int, list[tuple[int, bytes]]]:
    """Append the common lines of `data` to `rows` and `declared`; return their number, and the other lines.

    `data` is of whole lines, each ending in a newline, and begins with line `first_line`; the other lines are pairs of
    line number and bytes.
    """
    assert data.endswith(b"\n")
    found = _LINE.findall(data.decode("latin-1"), 0, len(data) - 1)  # One match a line; a character is a byte.
    taken = np.zeros(len(found), np.bool_)
    partitions = [place for place, line in enumerate(found) if line[1]]
    if partitions:
        taken[_add_partitions(partitions, [found[place] for place in partitions], first_line, rows)] = True
    for place, line in enumerate(found):
        if line[7]:
            topic, _, _, _, _, _, topic_id, count, factor, configs = line
            known = _parsed_configs(configs)
            if known is not None:
                taken[place] = True
                settings = known.min_insync_replicas, topic_id or None, known.configs
                declared.append((first_line + place, TopicView(topic, int(count), int(factor), *settings)))
    if taken.all():
        return len(found), []
    lines = data[:-1].split(b"\n")
    left = np.flatnonzero(~taken).tolist()
    return len(found) - len(left), [(first_line + place, lines[place]) for place in left]


def _add_partitions(
    places: Sequence[int], lines: Sequence[tuple[str, ...]], first_line: int, rows: PartitionRows
) -> NDArray[np.int64]:
    """Append the possible ones of these partition lines; return their places in the block."""
    topics, partitions, leaders, replicas, isrs, tails, *_ = zip(*lines, strict=True)
    leader = np.array([NO_LEADER if text == "none" else int(text) for text in leaders], np.int32)
    replica_matrix, isr_matrix = _matrix(replicas), _matrix(isrs)
    codes: dict[str, int] = {}
    tail_codes = np.array([codes.setdefault(text, len(codes)) for text in tails], np.int64)
    parsed = [_parsed_tail(text) for text in codes]
    possible = _are_possible(leader, replica_matrix, isr_matrix)
    possible &= np.array([tail is not None for tail in parsed])[tail_codes]
    kept = np.flatnonzero(possible)
    if not kept.size:
        return kept
    matrices = {"replicas": _narrowed(replica_matrix[kept]), "isr": _narrowed(isr_matrix[kept])}
    used, tail_codes = np.unique(tail_codes[kept], return_inverse=True)
    for column in _TAIL_LISTS:
        lists = [getattr(parsed[code], column) for code in used.tolist()]
        if any(one is not None for one in lists):
            matrices[column] = padded([one or () for one in lists])[tail_codes]
    whole, known = np.array(places, np.int64)[kept], rows.topics
    rows.add_chunk(
        Chunk(
            line=whole + first_line,
            topic_index=np.array([known.setdefault(topics[row], len(known)) for row in kept.tolist()], np.int32),
            partition_ids=np.array(list(map(int, partitions)), np.int32)[kept],
            leader=leader[kept],
            matrices=matrices,
        )
    )
    return whole


@functools.lru_cache(maxsize=1 << 16)
def _parsed_tail(text: str) -> Row | None:
    """Return a line with the fields behind Isr; None where only describe_line can read them with their line."""
    parsed = parse_line(_BEFORE_TAIL + escaped(text.encode("latin-1")))
    return parsed if isinstance(parsed, Row) and not parsed.isr and not parsed.marked_for_deletion else None


@functools.lru_cache(maxsize=1 << 12)  # Topics share few settings: texts of at most 8 KiB each, so 32 MiB.
def _parsed_configs(text: str) -> TopicView | None:
    """Return a topic with these Configs; None where only describe_line can read them."""
    parsed = parse_line(_BEFORE_CONFIGS + escaped(text.encode("latin-1")))
    return parsed.topic if isinstance(parsed, TopicLine) and not parsed.marked_for_deletion else None


def _matrix(texts: Sequence[str]) -> Int32Array:
    """Return lists of ids, commas between them, as a matrix padded by -1."""
    lengths = np.array([text.count(",") + 1 if text else 0 for text in texts])
    matrix = np.full((len(texts), int(lengths.max())), PAD, np.int32)
    if matrix.shape[1]:
        flat = np.fromstring(",".join(filter(None, texts)), dtype=np.int32, sep=",")
        matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = flat
    return matrix


def _narrowed(matrix: Int32Array) -> Int32Array:
    """Return a matrix without the columns that are -1 in every row."""
    return matrix[:, : int((matrix >= 0).sum(axis=1).max())]


def _are_possible(leader: Int32Array, replicas: Int32Array, isr: Int32Array) -> NDArray[np.bool_]:
    """Return, for each row, whether these lists pass `checks.fault_of_ids` and `checks.fault_of_row`."""
    possible: NDArray[np.bool_] = (leader == NO_LEADER) | (replicas == leader[:, None]).any(axis=1)
    for matrix in (replicas, isr):
        ordered = np.sort(matrix, axis=1)
        possible &= ~((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    for column in isr.T:
        possible &= (column < 0) | (replicas == column[:, None]).any(axis=1)
    return possible
