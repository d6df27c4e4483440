"""Read `kafka-topics --describe` text of any length into one ClusterView, in one pass.

`partitions_complete` is False when no topic line was seen, as Kafka prints none when a filter such as
--under-replicated-partitions is given, and when no partition line was, as with --topics-with-overrides.

Source: Kafka TopicCommand, 0.8 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int64Array, SettingsShown, TopicView
from broker.errors import InputError
from broker.wording import counted
from placement.formats.describe_block import read_block
from placement.formats.describe_line import Fault, TopicLine, is_ours, parse_line
from placement.formats.documents import collector_paused
from placement.formats.parsed import ParsedDump, RowCounts, first_few
from placement.formats.rows import Closed, PartitionRows
from placement.formats.text import LINE_BYTES_MAX, Block, escaped, line_blocks

FORMAT: Final = "kafka-topics"
_TOO_LONG: Final = f"the line is longer than {LINE_BYTES_MAX} bytes"


@attrs.frozen(eq=False)
class _Declared:
    """Hold the first topic line of each topic, in line order: its number, and the topic's place in `names`."""

    names: list[str]
    topics: list[TopicView]
    line: Int64Array
    topic_index: Int64Array


@attrs.define(eq=False)
class _DescribeParser:
    source: str
    row_counts: RowCounts
    rows: PartitionRows
    topic_lines: list[tuple[int, TopicView]] = attrs.field(factory=list)
    marked: dict[str, None] = attrs.field(factory=dict)

    def read(self, block: Block) -> None:
        """Read one block of lines."""
        if block.overlong:
            self._read_overlong(block)
            return
        taken_count, left = read_block(block.data, block.first_line, self.rows, self.topic_lines)
        self.row_counts.rows_analysed += taken_count
        for line, data in left:
            self._read_line(line, data)

    def _read_overlong(self, block: Block) -> None:
        text = escaped(block.data)
        if is_ours(text):
            self.row_counts.reject(_TOO_LONG, text, line=block.first_line)
        else:
            self.row_counts.pass_over(block.first_line, text)

    def _read_line(self, line: int, data: bytes) -> None:
        if len(data) > LINE_BYTES_MAX:
            self._read_overlong(Block(line, data))
            return
        parsed = parse_line(escaped(data), line)
        if parsed is None:
            if data.strip():
                self.row_counts.pass_over(line, escaped(data))
            return
        if isinstance(parsed, Fault):
            self.row_counts.reject(parsed.reason, escaped(data).strip(), line=line)
            return
        self.row_counts.rows_analysed += 1
        if isinstance(parsed, TopicLine):
            self.topic_lines.append((line, parsed.topic))
        else:
            self.rows.add(parsed)
        if parsed.marked_for_deletion:
            self.marked[parsed.topic.name if isinstance(parsed, TopicLine) else parsed.topic] = None

    def close(self) -> tuple[_Declared, Closed]:
        """Finish the tables and reject duplicate and oversized rows."""
        first: dict[str, tuple[int, TopicView]] = {}
        for line, topic in sorted(self.topic_lines, key=lambda one: one[0]):
            if first.setdefault(topic.name, (line, topic))[0] != line:
                what = f"topic {topic.name}"
                self._put_aside(
                    f"{what} is already described in line {first[topic.name][0]}", line, what, is_repeat=True
                )
        closed = self.rows.close(lambda line: f"already described in line {line}")
        for row in closed.rejected:
            self._put_aside(row.reason, row.line, row.partition, is_repeat=row.is_repeat)
        self.row_counts.rejects.sort(key=lambda reject: reject.line or 0)
        places = [self.rows.topic_index(name) for name in first]
        lines, topics = [line for line, _ in first.values()], [topic for _, topic in first.values()]
        names = list(self.rows.topics)
        return _Declared(names, topics, np.array(lines, np.int64), np.array(places, np.int64)), closed

    def _put_aside(self, reason: str, line: int, value: str, *, is_repeat: bool) -> None:
        self.row_counts.rows_analysed -= 1
        self.row_counts.reject(reason, value, line=line, is_repeat=is_repeat)


def read_describe(chunks: Iterable[bytes], *, source: str, name: str) -> ParsedDump:
    """Return the cluster that these chunks of UTF-8 text describe.

    Raises InputError when no line describes a topic or partition, or when a limit is passed.
    """
    row_counts = RowCounts(source, FORMAT)
    reader = _DescribeParser(source, row_counts, PartitionRows(source))
    first_text = ""
    for block in line_blocks(chunks):
        first_text = first_text or escaped(block.data[:4000]).strip()[:400]
        reader.read(block)
    if not row_counts.rows_analysed and not row_counts.rejects:
        raise _unknown(source, first_text)
    declared, closed = reader.close()
    if not row_counts.rows_analysed:
        return row_counts.dump(())
    row_counts.notes.extend(_notes(list(reader.marked), declared, closed))
    order = _order(declared, closed)
    rank = np.full(len(declared.names), -1, dtype=np.int32)
    rank[order] = np.arange(order.shape[0], dtype=np.int32)
    view = ClusterView.build(
        name=name,
        source=source,
        format=FORMAT,
        partitions=attrs.evolve(closed.table, topic_index=rank[closed.table.topic_index]),
        topics=_topics(declared, order),
        partitions_complete=bool(declared.line.size) and not _lists_topics_alone(declared, closed),
        settings_shown=SettingsShown.EFFECTIVE,
        notes=tuple(row_counts.notes),
    )
    return row_counts.dump((view,))


class NoDescribeError(InputError):
    """Report that no line of the text is a line of kafka-topics --describe."""


def _unknown(source: str, first_text: str) -> NoDescribeError:
    if not first_text:
        return NoDescribeError("the input is empty", source=source)
    first_line = first_text.splitlines()[0]
    return NoDescribeError("no line describes a topic or a partition", source=source, line=1, value=first_line)


def _lists_topics_alone(declared: _Declared, closed: Closed) -> bool:
    """Return whether there are topic lines and no partitions: the output of --topics-with-overrides."""
    return bool(declared.line.size) and not closed.table.count


def _order(declared: _Declared, closed: Closed) -> Int64Array:
    """Return the topics' numbers in the order of their first lines, without unused topics."""
    never = np.iinfo(np.int64).max
    first_line = np.full(len(declared.names), never)
    first_line[declared.topic_index] = declared.line
    np.minimum.at(first_line, closed.table.topic_index, closed.line)
    order = np.argsort(first_line, kind="stable")
    return order[: int(np.count_nonzero(first_line < never))]


def _topics(declared: _Declared, order: Int64Array) -> tuple[TopicView, ...]:
    """Return the topics in this order; one without a line has its name."""
    by_place = dict(zip(declared.topic_index.tolist(), declared.topics, strict=True))
    with collector_paused():
        return tuple(by_place.get(place) or TopicView(declared.names[place]) for place in order.tolist())


def _notes(marked: list[str], declared: _Declared, closed: Closed) -> list[str]:
    notes = []
    if not declared.line.size:
        notes.append("no topic lines: a filtered describe lists only some partitions")
    if _lists_topics_alone(declared, closed):
        return [*notes, "no partition lines, as with --topics-with-overrides: nothing is known of the brokers"]
    notes += _count_notes(declared, closed)
    notes += _stray_notes(declared, closed)
    notes += first_few([f"topic {topic} is marked for deletion" for topic in marked])
    return notes


def _count_notes(declared: _Declared, closed: Closed) -> list[str]:
    """Return notes on topics whose declared number of partitions differs from the number found."""
    seen = np.bincount(closed.table.topic_index, minlength=len(declared.names))[declared.topic_index].tolist()
    wrong = [
        (topic.name, topic.partition_count, count)
        for topic, count in zip(declared.topics, seen, strict=True)
        if topic.partition_count not in (None, count)
    ]
    sentences = [
        f"topic {name} declares {counted(count or 0, 'partition')}; {found} could be used"
        for name, count, found in wrong[:10]
    ]
    return first_few(sentences, total=len(wrong))


def _stray_notes(declared: _Declared, closed: Closed) -> list[str]:
    """Return notes on partitions that follow another topic's line."""
    if not declared.line.size:
        return []
    above = np.searchsorted(declared.line, closed.line) - 1
    expected = np.where(above >= 0, declared.topic_index[np.maximum(above, 0)], closed.table.topic_index)
    stray = np.flatnonzero(expected != closed.table.topic_index)
    sentences = [
        f"line {closed.line[row]}: a partition of {declared.names[closed.table.topic_index[row]]} "
        f"stands under the line of topic {declared.names[expected[row]]}"
        for row in stray[:10].tolist()
    ]
    return first_few(sentences, total=int(stray.size))
