"""Read `kafka-topics --describe` text of any length into one ClusterView, in one pass.

`partitions_complete` is False when no topic line was seen: Kafka prints none when a
filter such as --under-replicated-partitions is given; and when no partition line was, as with --topics-with-overrides.

Source: Kafka TopicCommand, 0.8 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int64Array, SettingsShown
from broker.errors import InputError
from broker.wording import counted
from placement.formats.describe_block import read_block
from placement.formats.describe_declared import Declared, TopicLines
from placement.formats.describe_line import Fault, PartitionLine, is_ours, parse_line
from placement.formats.parsed import ParsedDump, RowCounts, first_few
from placement.formats.rows import Closed, PartitionRows, Row
from placement.formats.text import LINE_BYTES_MAX, Block, escaped, line_blocks

FORMAT: Final = "kafka-topics"
_TOO_LONG: Final = f"the line is longer than {LINE_BYTES_MAX} bytes"


@attrs.define(eq=False)
class _DescribeParser:
    source: str
    row_counts: RowCounts
    rows: PartitionRows
    declared: TopicLines = attrs.field(factory=TopicLines)
    marked: list[str] = attrs.field(factory=list)

    def read(self, block: Block) -> None:
        """Read one block of lines."""
        if block.overlong:
            self._read_overlong(block)
            return
        taken_count, left = read_block(block.data, block.first_line, self.rows, self.declared)
        self.row_counts.rows_analysed += taken_count
        for line, data in left:
            self._read_line(line, data)

    def _read_overlong(self, block: Block) -> None:
        text = escaped(block.data)
        if is_ours(text):
            self.row_counts.reject(_TOO_LONG, text, line=block.first_line)
        else:
            self.row_counts.lines_passed_over += 1

    def _read_line(self, line: int, data: bytes) -> None:
        if len(data) > LINE_BYTES_MAX:
            self._read_overlong(Block(line, data))
            return
        parsed = parse_line(escaped(data))
        if parsed is None:
            self.row_counts.lines_passed_over += 1
        elif isinstance(parsed, Fault):
            self.row_counts.reject(parsed.reason, escaped(data).strip(), line=line)
        elif isinstance(parsed, PartitionLine):
            self._read_partition(line, parsed)
        else:
            topic = parsed.topic
            if parsed.marked_for_deletion:
                self.marked.append(topic.name)
            self.declared.add(
                line,
                self.rows.topic_index(topic.name),
                topic.partition_count,
                topic.replication_factor,
                topic.topic_id,
                (topic.min_insync_replicas, topic.configs),
            )
            self.row_counts.rows_analysed += 1

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
        self.row_counts.rows_analysed += 1
        if parsed.marked_for_deletion and self.marked[-1:] != [parsed.topic]:
            self.marked.append(parsed.topic)

    def close(self) -> tuple[Declared, Closed]:
        """Finish the tables and reject duplicate and oversized rows."""
        declared = self.declared.close()
        names = list(self.rows.topics)
        for again in declared.repeated:
            what = f"topic {names[again.topic_index]}"
            self._put_aside(f"{what} is already described in line {again.first_line}", again.line, what)
        closed = self.rows.close()
        for twice in closed.duplicates:
            what = f"partition {twice.partition} of {twice.topic}"
            self._put_aside(f"{what} is already described in line {twice.first_line}", twice.line, what)
        for wide in closed.too_wide:
            what = f"partition {wide.partition} of {wide.topic}"
            reason = f"{what} lists {wide.broker_count} brokers; a dump this long may list {wide.broker_count_max}"
            self._put_aside(reason, wide.line, what)
        self.row_counts.rejects.sort(key=lambda reject: reject.line or 0)
        return declared, closed

    def _put_aside(self, reason: str, line: int, value: str) -> None:
        self.row_counts.rows_analysed -= 1
        self.row_counts.reject(reason, value, line=line)


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
    notes = _notes(reader, declared, closed)
    row_counts.notes.extend(notes)
    return row_counts.dump((_view(reader, declared, closed, name, notes),))


class NoDescribeError(InputError):
    """Report that no line of the text is a line of kafka-topics --describe."""


def _unknown(source: str, first_text: str) -> NoDescribeError:
    if not first_text:
        return NoDescribeError("the input is empty", source=source)
    first_line = first_text.splitlines()[0]
    return NoDescribeError("no line describes a topic or a partition", source=source, line=1, value=first_line)


def _lists_topics_alone(declared: Declared, closed: Closed) -> bool:
    """Return whether there are topic lines and no partitions: the output of --topics-with-overrides."""
    return bool(declared.line.size) and not closed.table.count


def _order(topic_count: int, declared: Declared, closed: Closed) -> Int64Array:
    """Return the topics' numbers in the order of their first lines, without unused topics."""
    never = np.iinfo(np.int64).max
    first_line = np.full(topic_count, never)
    first_line[declared.topic_index] = declared.line
    np.minimum.at(first_line, closed.table.topic_index, closed.line)
    order = np.argsort(first_line, kind="stable")
    return order[: int(np.count_nonzero(first_line < never))]


def _view(reader: _DescribeParser, declared: Declared, closed: Closed, name: str, notes: list[str]) -> ClusterView:
    names = list(reader.rows.topics)
    order = _order(len(names), declared, closed)
    rank = np.full(len(names), -1, dtype=np.int32)
    rank[order] = np.arange(order.shape[0], dtype=np.int32)
    return ClusterView.build(
        name=name,
        source=reader.source,
        format=FORMAT,
        partitions=attrs.evolve(closed.table, topic_index=rank[closed.table.topic_index]),
        topics=reader.declared.views(names, order.tolist()),
        partitions_complete=bool(declared.line.size) and not _lists_topics_alone(declared, closed),
        settings_shown=SettingsShown.EFFECTIVE,
        notes=tuple(notes),
    )


def _notes(reader: _DescribeParser, declared: Declared, closed: Closed) -> list[str]:
    names = list(reader.rows.topics)
    notes = []
    if not declared.line.size:
        notes.append("no topic lines: a filtered describe lists only some partitions")
    if _lists_topics_alone(declared, closed):
        return [*notes, "no partition lines, as with --topics-with-overrides: nothing is known of the brokers"]
    notes += _count_notes(names, declared, closed)
    notes += _stray_notes(names, declared, closed)
    notes += first_few([f"topic {topic} is marked for deletion" for topic in dict.fromkeys(reader.marked)])
    return notes


def _count_notes(names: list[str], declared: Declared, closed: Closed) -> list[str]:
    """Return notes on topics whose declared number of partitions differs from the number found."""
    seen = np.bincount(closed.table.topic_index, minlength=len(names))[declared.topic_index]
    wrong = np.flatnonzero((declared.partition_count >= 0) & (declared.partition_count != seen))
    sentences = [
        f"topic {names[declared.topic_index[row]]} declares "
        f"{counted(int(declared.partition_count[row]), 'partition')}; {seen[row]} could be used"
        for row in wrong[:10].tolist()
    ]
    return first_few(sentences, total=int(wrong.size))


def _stray_notes(names: list[str], declared: Declared, closed: Closed) -> list[str]:
    """Return notes on partitions that follow another topic's line."""
    if not declared.line.size:
        return []
    above = np.searchsorted(declared.line, closed.line) - 1
    expected = np.where(above >= 0, declared.topic_index[np.maximum(above, 0)], closed.table.topic_index)
    stray = np.flatnonzero(expected != closed.table.topic_index)
    sentences = [
        f"line {closed.line[row]}: a partition of {names[closed.table.topic_index[row]]} "
        f"stands under the line of topic {names[expected[row]]}"
        for row in stray[:10].tolist()
    ]
    return first_few(sentences, total=int(stray.size))
