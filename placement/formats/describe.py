"""`kafka-topics --describe`: text of any length into one ClusterView, in one pass.

Goals: every line accounted for; a million partitions at the speed of splitting their
lines; bounded memory. Constraints: rows = topic lines + partition lines; each is
analysed or put aside with its line; all other lines are passed over and counted.

How: blocks of lines go through describe_block, and what that leaves goes line by line
through describe_line. When the text ends, duplicates are put aside (the first stays),
and what the topic lines declare is compared with the partitions seen.

`partitions_complete` is False when no topic line was seen: Kafka prints none when a
filter such as --under-replicated-partitions is given.

Example: "Topic: a\\tPartitionCount: 1\\tReplicationFactor: 2\\tConfigs: min.insync.replicas=2" and
"\\tTopic: a\\tPartition: 0\\tLeader: 1\\tReplicas: 1,2\\tIsr: 1" give a view of two brokers and one partition.

Left out: racks and brokers that hold nothing, which a describe does not print.
Source: Kafka TopicCommand, 0.8 to 4.1.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int64Array, TopicView
from broker.errors import InputError
from placement.formats.checks import fault_of_topic_name
from placement.formats.describe_block import find_fields, read_block, with_tabs
from placement.formats.describe_line import Fault, PartitionLine, is_ours, parse_line
from placement.formats.parsed import ParsedDump, Tally, first_few
from placement.formats.rows import Closed, PartitionRows, Row
from placement.formats.text import LINE_BYTES_MAX, Block, escaped, line_blocks

FORMAT: Final = "kafka-topics"
# A cluster's topics share a few settings, so what follows a topic's name and id repeats and is parsed once.
_ENDS_MAX: Final = 4096
_HEAD: Final = re.compile(
    rb"[\x00-\x20]*Topic:[\x00-\x20]*(?!\.\.?[\x00-\x20])([A-Za-z0-9._-]{1,249})[\x00-\x20]+"
    rb"(?:TopicId:[\x00-\x20]*([A-Za-z0-9_-]{1,64})[\x00-\x20]+)?(?=PartitionCount:)"
)
_TOO_LONG: Final = f"the line is longer than {LINE_BYTES_MAX} bytes"


@attrs.define(eq=False)
class _Reader:
    source: str
    tally: Tally
    rows: PartitionRows
    min_insync_replicas_default: int | None
    ends: dict[bytes, TopicView] = attrs.field(factory=dict)
    declared: dict[int, TopicView] = attrs.field(factory=dict)
    declared_line: dict[int, int] = attrs.field(factory=dict)
    header_lines: array[int] = attrs.field(factory=lambda: array("q"))
    header_topics: array[int] = attrs.field(factory=lambda: array("i"))
    marked: list[str] = attrs.field(factory=list)

    def topic_index(self, name: str) -> int | None:
        """Return the topic's number; None when the name is illegal."""
        known = self.rows.topics.get(name)
        if known is not None:
            return known
        return None if fault_of_topic_name(name) else self.rows.topic_index(name)

    def read(self, block: Block) -> None:
        """Read one block."""
        if block.overlong:
            self._read_overlong(block)
            return
        fields = find_fields(block.data)
        chunks, taken = read_block(fields, block.first_line, self.topic_index)
        if not chunks and b"Partition:" in block.data:
            spaced = find_fields(with_tabs(block.data.replace(b"\r\n", b"\n")))
            chunks, taken = read_block(spaced, block.first_line, self.topic_index)
        for chunk in chunks:
            self.rows.add_chunk(chunk)
            self.tally.rows_analysed += chunk.line.shape[0]
        blank = fields.is_blank()
        self.tally.lines_passed_over += int(np.count_nonzero(blank))
        left = np.flatnonzero(~taken & ~blank)
        for index, (start, end) in zip(left.tolist(), fields.line_bounds(left), strict=True):
            self._read_line(block.first_line + index, block.data[start:end])

    def _read_overlong(self, block: Block) -> None:
        text = escaped(block.data)
        if is_ours(text):
            self.tally.reject(_TOO_LONG, text, line=block.first_line)
        else:
            self.tally.lines_passed_over += 1

    def _read_line(self, line: int, data: bytes) -> None:
        if len(data) > LINE_BYTES_MAX:
            self._read_overlong(Block(line, data))
            return
        head = _HEAD.match(data)
        known = None if head is None else self.ends.get(data[head.end() :])
        if head is not None and known is not None:
            name, topic_id = head[1].decode("ascii"), None if head[2] is None else head[2].decode("ascii")
            self._read_topic(line, _renamed(known, name, topic_id), data)
            return
        parsed = parse_line(escaped(data))
        if parsed is None:
            self.tally.lines_passed_over += 1
        elif isinstance(parsed, Fault):
            self.tally.reject(parsed.reason, escaped(data).strip(), line=line)
        elif isinstance(parsed, PartitionLine):
            self._read_partition(line, parsed)
        else:
            if head is not None and not parsed.marked_for_deletion and len(self.ends) < _ENDS_MAX:
                self.ends[data[head.end() :]] = parsed.topic
            if parsed.marked_for_deletion:
                self.marked.append(parsed.topic.name)
            self._read_topic(line, parsed.topic, data)

    def _read_topic(self, line: int, topic: TopicView, data: bytes) -> None:
        index = self.rows.topic_index(topic.name)
        if index in self.declared:
            reason = f"topic {topic.name} is already described in line {self.declared_line[index]}"
            self.tally.reject(reason, escaped(data).strip(), line=line)
            return
        self.header_lines.append(line)
        self.header_topics.append(index)
        self.declared_line[index] = line
        if topic.min_insync_replicas is None and self.min_insync_replicas_default is not None:
            topic = attrs.evolve(topic, min_insync_replicas=self.min_insync_replicas_default)
        self.declared[index] = topic
        self.tally.rows_analysed += 1

    def _read_partition(self, line: int, parsed: PartitionLine) -> None:
        self.rows.add(
            Row(
                line=line,
                topic_index=self.rows.topic_index(parsed.topic),
                partition=parsed.partition,
                replicas=parsed.replicas,
                leader=parsed.leader,
                isr=parsed.isr,
                elr=parsed.elr,
                last_known_elr=parsed.last_known_elr,
                offline=parsed.offline,
                observers=parsed.observers,
                adding=parsed.adding,
                removing=parsed.removing,
            )
        )
        self.tally.rows_analysed += 1
        if parsed.marked_for_deletion and self.marked[-1:] != [parsed.topic]:
            self.marked.append(parsed.topic)

    def close(self) -> Closed:
        """Close the table and put aside what did not get in."""
        closed = self.rows.close()
        for twice in closed.duplicates:
            what = f"partition {twice.partition} of {twice.topic}"
            self._put_aside(f"{what} is already described in line {twice.first_line}", twice.line, what)
        for wide in closed.too_wide:
            what = f"partition {wide.partition} of {wide.topic}"
            reason = f"{what} lists {wide.broker_count} brokers; a dump this long may list {wide.broker_count_max}"
            self._put_aside(reason, wide.line, what)
        self.tally.rejects.sort(key=lambda reject: reject.line or 0)
        return closed

    def _put_aside(self, reason: str, line: int, value: str) -> None:
        self.tally.rows_analysed -= 1
        self.tally.reject(reason, value, line=line)


def _renamed(topic: TopicView, name: str, topic_id: str | None) -> TopicView:
    return TopicView(
        name, topic.partition_count, topic.replication_factor, topic.min_insync_replicas, topic_id, topic.configs
    )


def read_describe(
    chunks: Iterable[bytes], *, source: str, name: str, min_insync_replicas_default: int | None = None
) -> ParsedDump:
    """Return the cluster that these chunks of UTF-8 text describe.

    `min_insync_replicas_default` stands for topics whose line does not say. Raises InputError when
    no line describes a topic or partition, or when a limit is passed.
    """
    tally = Tally(source, FORMAT)
    reader = _Reader(source, tally, PartitionRows(source), min_insync_replicas_default)
    first_text = ""
    for block in line_blocks(chunks):
        first_text = first_text or escaped(block.data[:4000]).strip()[:400]
        reader.read(block)
    if not tally.rows_analysed and not tally.rejects:
        raise _unknown(source, first_text)
    closed = reader.close()
    if not tally.rows_analysed:
        return tally.dump(())
    notes = _notes(reader, closed)
    tally.notes.extend(notes)
    return tally.dump((_view(reader, closed, name, notes),))


class NoDescribeError(InputError):
    """No line of the text belongs to a describe."""


def _unknown(source: str, first_text: str) -> NoDescribeError:
    if not first_text:
        return NoDescribeError("the input is empty", source=source)
    first_line = first_text.splitlines()[0]
    return NoDescribeError("no line describes a topic or a partition", source=source, line=1, value=first_line)


def _order(reader: _Reader, closed: Closed) -> Int64Array:
    """Return the topics' numbers in the order of the lines that first name them, leaving out topics never used."""
    first_line = np.full(len(reader.rows.topics), np.iinfo(np.int64).max)
    for index, line in reader.declared_line.items():
        first_line[index] = line
    np.minimum.at(first_line, closed.table.topic_index, closed.line)
    order = np.argsort(first_line, kind="stable")
    return order[: int(np.count_nonzero(first_line < np.iinfo(np.int64).max))]


def _view(reader: _Reader, closed: Closed, name: str, notes: list[str]) -> ClusterView:
    order = _order(reader, closed)
    rank = np.full(len(reader.rows.topics), -1, dtype=np.int32)
    rank[order] = np.arange(order.shape[0], dtype=np.int32)
    names = list(reader.rows.topics)
    default = reader.min_insync_replicas_default
    return ClusterView.build(
        name=name,
        source=reader.source,
        format=FORMAT,
        partitions=attrs.evolve(closed.table, topic_index=rank[closed.table.topic_index]),
        topics=tuple(
            reader.declared.get(index) or TopicView(names[index], min_insync_replicas=default)
            for index in order.tolist()
        ),
        partitions_complete=bool(reader.declared),
        notes=tuple(notes),
    )


def _notes(reader: _Reader, closed: Closed) -> list[str]:
    notes = []
    if not reader.declared:
        notes.append("no topic lines: a filtered describe lists only some partitions")
    notes += _count_notes(reader, closed)
    notes += _stray_notes(reader, closed)
    notes += first_few([f"topic {topic} is marked for deletion" for topic in dict.fromkeys(reader.marked)])
    return notes


def _count_notes(reader: _Reader, closed: Closed) -> list[str]:
    """Compare each topic's declared number of partitions with those seen."""
    seen = np.bincount(closed.table.topic_index, minlength=len(reader.rows.topics)).tolist()
    sentences = []
    for name, index in reader.rows.topics.items():
        line = reader.declared.get(index)
        if line is not None and line.partition_count is not None and line.partition_count != seen[index]:
            sentences.append(f"topic {name} declares {line.partition_count} partitions; {seen[index]} could be used")
    return first_few(sentences)


def _stray_notes(reader: _Reader, closed: Closed) -> list[str]:
    """Find partitions that stand under another topic's line."""
    if not reader.header_lines:
        return []
    header_lines = np.array(reader.header_lines, dtype=np.int64)
    header_topics = np.array(reader.header_topics, dtype=np.int32)
    above = np.searchsorted(header_lines, closed.line) - 1
    expected = np.where(above >= 0, header_topics[np.maximum(above, 0)], closed.table.topic_index)
    stray = np.flatnonzero(expected != closed.table.topic_index)
    names = list(reader.rows.topics)
    sentences = [
        f"line {closed.line[row]}: a partition of {names[closed.table.topic_index[row]]} "
        f"stands under the line of topic {names[expected[row]]}"
        for row in stray[:10].tolist()
    ]
    return first_few(sentences, total=int(stray.size))
