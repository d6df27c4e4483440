"""Pasted describes: wrapped at any width, they are read as they were, or what differs is rejected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from placement.formats.parsed import ParsedDump
from placement.formats.read import read_dump

PLAIN = "".join(
    f"Topic: {topic}\tTopicId: {'A' * 22}\tPartitionCount: {len(rows)}\tReplicationFactor: {len(rows[0][0])}\t"
    f"Configs: {configs}\n"
    + "".join(
        f"\tTopic: {topic}\tPartition: {number}\tLeader: {isr[0]}\tReplicas: {','.join(map(str, replicas))}\t"
        f"Isr: {','.join(map(str, isr))}\n"
        for number, (replicas, isr) in enumerate(rows)
    )
    for topic, configs, rows in (
        ("orders", "min.insync.replicas=2,cleanup.policy=compact,retention.ms=604800000", [((1, 2, 3), (1, 2, 3))] * 3),
        ("a-topic.of.some-length", "", [((101, 12, 1234), (12, 101, 1234)), ((12, 101, 1), (101,))]),
        ("x", "segment.bytes=1073741824", [((1, 12), (1, 12)), ((12, 1), (12, 1))]),
    )
)
WITH_ELR = PLAIN.replace("Isr: 101\n", "Isr: 101\tElr: 12,1\tLastKnownElr: 12\n")
WITH_ELR = "".join(
    line if "Configs" in line or "Elr:" in line else line[:-1] + "\tElr: \tLastKnownElr: \n"
    for line in WITH_ELR.splitlines(keepends=True)
)


def folded(text: str, width: int) -> str:
    """The text as `fold -w WIDTH` prints it: a tab goes on to the next multiple of 8."""
    found, column = [], 0
    for each in text:
        after = 0 if each == "\n" else (column // 8 + 1) * 8 if each == "\t" else column + 1
        if after > width:
            found.append("\n")
            after = 8 if each == "\t" else 1
        found.append(each)
        column = after
    return "".join(found)


def read(text: str) -> ParsedDump:
    return read_dump([text.encode()], source="d", name="d")


def rows_of(parsed: ParsedDump) -> Iterator[tuple[object, ...]]:
    (view,) = parsed.clusters
    table = view.partitions
    for topic in view.topics:
        yield topic.name, topic.partition_count, topic.replication_factor, topic.topic_id, topic.configs
    for place, index in enumerate(table.topic_index.tolist()):
        lists = [table.replicas, table.isr, table.elr, table.last_known_elr]
        ids = [None if each is None else tuple(each[place][each[place] >= 0].tolist()) for each in lists]
        leader = None if table.leader is None else int(table.leader[place])
        yield view.topics[index].name, int(table.partition_ids[place]), leader, *ids


@pytest.mark.parametrize("text", [PLAIN, WITH_ELR], ids=["plain", "ELR"])
@pytest.mark.parametrize("only", [None, 1])
def test_a_describe_folded_at_any_width_is_read_as_it_was_or_rejected(text: str, only: int | None) -> None:
    lines = text.splitlines(keepends=True)
    text = text if only is None else "".join(lines[:4])
    printed = list(rows_of(read(text)))
    differ = []
    for width in range(40, 141):
        parsed = read(folded(text, width))
        found = list(rows_of(parsed))
        if found == printed:
            continue
        assert parsed.rows_rejected, (width, parsed.notes)
        assert not parsed.clusters[0].wholeness.is_whole, width
        assert not [row for row in found if row[1] is not None and row not in printed], width
        differ.append(width)
    assert len(differ) < 10


@pytest.mark.parametrize("border", ["|", "\u2502", "\u2503", "\u2551"])
def test_borders_around_rows_are_no_part_of_them(border: str) -> None:
    boxed = "".join(f"{border} {line.expandtabs():<170} {border}\n" for line in PLAIN.splitlines())
    assert list(rows_of(read(boxed))) == list(rows_of(read(PLAIN)))


def test_a_count_below_a_describe_is_no_part_of_its_last_row() -> None:
    assert list(rows_of(read(PLAIN + "7\n"))) == list(rows_of(read(PLAIN)))
