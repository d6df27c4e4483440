"""Parse the common lines of `kafka-topics --describe` from bytes: one compiled pass over a block.

Goals, most important first: take only lines that `placement.formats.describe_line` would
take, with equal values (a property test holds it to that); cost less than splitting the lines.

How: a line is names, each followed by its value, with any bytes up to 0x20 between them, so
tabs, spaces and carriage returns need no case of their own. `Grammar` says which names there are,
in which slot the value of each goes, and how large it may be. Whatever surprises (an unknown name, a value
missing, a name twice, a leader that is no replica) leaves the line to the careful reader, which has words
for it. Lists go to one array of values; a row remembers where its lists begin and how long they are.
Topics' names and Configs are compared with those of the line before, so that Python sees each run of equal ones once.

Every loop over bytes ends at a line's end at the latest: a block ends in a newline, and no name holds one.

Example: b"\\tTopic: a\\tPartition: 0\\tLeader: 1\\tReplicas: 1,2\\tIsr: 2\\n" gives `values` 1, 2, 2 and a row of
line 0, run 0, partition 0, leader 1, replicas 2 from 0, ISR 1 from 2, no other list.

Left out: Configs, which only describe_line cuts into pairs.
Cost: about two nanoseconds a byte. Source: ours.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]

# Slots: where the value of a field goes. The eight from REPLICAS on are lists.
TOPIC: Final = 0
PARTITION: Final = 1
LEADER: Final = 2
REPLICAS: Final = 3
ISR: Final = 4
TOPIC_ID: Final = 11
PARTITION_COUNT: Final = 12
REPLICATION_FACTOR: Final = 13
CONFIGS: Final = 14
SLOT_COUNT: Final = 15
LIST_COUNT: Final = 8

# Columns of partition rows; then for each list the place of its first value, then for each its length, -1 unsaid.
LINE: Final = 0
RUN: Final = 1
PARTITION_ID: Final = 2
LEADER_ID: Final = 3
STARTS: Final = 4
LENGTHS: Final = STARTS + LIST_COUNT
PARTITION_COLUMN_COUNT: Final = LENGTHS + LIST_COUNT

# Columns of topic rows. The first three are those of lines left over, too.
BEGIN: Final = 1
END: Final = 2
TOPIC_RUN: Final = 3
COUNT: Final = 4
FACTOR: Final = 5
CONFIGS_RUN: Final = 6
ID_BEGIN: Final = 7
ID_END: Final = 8
TOPIC_COLUMN_COUNT: Final = 9

BLANK: Final = 32
NEWLINE: Final = 10
COMMA: Final = 44
DOT: Final = 46
ODD: Final = -1
NO_NUMBER: Final = -1
UNSAID: Final = -1
DIGITS_MAX: Final = 10
LIST_LENGTH_MAX: Final = 32  # Longer lists are left over: looking for an id twice grows with the square.
LINE_BYTES_TAKEN_MAX: Final = 1 << 16
ROW_BYTES_MIN: Final = len("Topic:a Partition:0 Leader:1 Replicas:1 Isr:\n")  # No line that is taken is shorter.

PARTITION_SLOTS: Final = 1 << TOPIC | 1 << PARTITION | 1 << LEADER | 1 << REPLICAS | 1 << ISR
TOPIC_SLOTS: Final = 1 << TOPIC | 1 << PARTITION_COUNT | 1 << REPLICATION_FACTOR | 1 << CONFIGS
NO_PARTITION_SLOTS: Final = 1 << TOPIC_ID | 1 << PARTITION_COUNT | 1 << REPLICATION_FACTOR | 1 << CONFIGS


class Grammar(NamedTuple):
    """Hold the field names in the order tried; a tuple, because numba takes no other record.

    `names` uint8[N, W] with their colon, 0 behind; `name_lengths`, `slots` int64[N]; `highs` int64[SLOT_COUNT]: the
    largest number, or the longest text in bytes; `word_kinds` uint8[256]: 1 for a byte of topics' names, 2 of ids.
    """

    names: ByteArray
    name_lengths: Int64Array
    slots: Int64Array
    highs: Int64Array
    word_kinds: ByteArray


class Found(NamedTuple):
    """Hold the tables that a pass fills, large enough for any content of the block.

    `partitions` int32[L, PARTITION_COLUMN_COUNT], `topics` int32[L, TOPIC_COLUMN_COUNT], `left` int32[L, 3]: rows;
    `topic_spans`, `configs_spans` int32[L, 2]: begin and end of each run's text, half-open; `values` int32;
    `slots` int64[SLOT_COUNT, 2]: the values of the line just read, or where they begin and their length or end.
    """

    partitions: Int32Array
    topics: Int32Array
    left: Int32Array
    topic_spans: Int32Array
    configs_spans: Int32Array
    values: Int32Array
    slots: Int64Array


class Counts(NamedTuple):
    """Count the rows filled in each table of `Found`, and the blank lines."""

    partitions: int
    topics: int
    left: int
    topic_spans: int
    configs_spans: int
    blank: int


def skip_blanks(data: ByteArray, position: int) -> int:
    """Return the position of the next non-blank byte, or of the line's end."""
    while data[position] <= BLANK and data[position] != NEWLINE:
        position += 1
    return position


def name_at(data: ByteArray, position: int, grammar: Grammar, guess: int) -> int:
    """Return the number of the field name at this position, or ODD; the search starts at the name `guess`."""
    name_count = grammar.slots.shape[0]
    for attempt in range(name_count):
        name = guess + attempt
        if name >= name_count:
            name -= name_count
        length = grammar.name_lengths[name]
        offset = 0
        while offset < length and data[position + offset] == grammar.names[name, offset]:
            offset += 1
        if offset == length:
            return name
    return ODD


def number_at(data: ByteArray, position: int) -> tuple[int, int]:
    """Return the number at this position, or NO_NUMBER, and the position behind it."""
    number = 0
    first = position
    digit = int(data[position]) - 48
    while 0 <= digit <= 9 and position - first <= DIGITS_MAX:
        number = number * 10 + digit
        position += 1
        digit = int(data[position]) - 48
    if position == first or position - first > DIGITS_MAX:
        number = NO_NUMBER
    return number, position


def list_at(data: ByteArray, position: int, values: Int32Array, used: int, high: int) -> tuple[int, int]:
    """Append the ids at this position behind the `used` values; return their count (or ODD) and the end position."""
    digit = int(data[position]) - 48
    if digit < 0 or digit > 9:
        return 0, position
    length = 0
    while True:
        number, position = number_at(data, position)
        if number < 0 or number > high or length == LIST_LENGTH_MAX:
            return ODD, position
        for place in range(used, used + length):
            if values[place] == number:
                return ODD, position
        values[used + length] = number
        length += 1
        if data[position] != COMMA:
            return length, position
        position += 1


def word_at(data: ByteArray, position: int, word_kinds: ByteArray, kind: int) -> int:
    """Return the end of the run of bytes of this kind that starts here."""
    while word_kinds[data[position]] & kind:
        position += 1
    return position


def value_at(
    data: ByteArray, position: int, slot: int, grammar: Grammar, slots: Int64Array, values: Int32Array, used: int
) -> tuple[int, int]:
    """Store the value at this position in its slot; return (the position behind it or ODD, values used)."""
    high = grammar.highs[slot]
    end = position
    if slot in (TOPIC, TOPIC_ID):
        end = word_at(data, position, grammar.word_kinds, 1 if slot == TOPIC else 2)
        length = end - position
        is_dots = slot == TOPIC and length <= 2 and data[position] == DOT and data[end - 1] == DOT
        slots[slot, 0], slots[slot, 1] = position, end
        return (ODD if length == 0 or length > high or is_dots else end), used
    if slot == CONFIGS:
        while data[end] != NEWLINE:
            end += 1
        behind = end
        while behind > position and data[behind - 1] <= BLANK:
            behind -= 1
        slots[slot, 0], slots[slot, 1] = position, behind
        return (ODD if behind - position > high else end), used
    if REPLICAS <= slot < REPLICAS + LIST_COUNT:
        if slot > ISR and data[position] == 78 and data[position + 1] == 47 and data[position + 2] == 65:  # N/A
            return position + 3, used
        length, end = list_at(data, position, values, used, high)
        slots[slot, 0], slots[slot, 1] = used, length
        return (ODD if length == ODD else end), used + max(length, 0)
    if slot == LEADER and data[position] == 45 and data[position + 1] == 49:  # -1
        slots[slot, 0] = -1
        return position + 2, used
    if slot == LEADER and data[position] == 110 and data[position + 1] == 111:  # no
        slots[slot, 0] = -1
        return (position + 4 if data[position + 2] == 110 and data[position + 3] == 101 else ODD), used  # ne
    slots[slot, 0], end = number_at(data, position)
    return (ODD if slots[slot, 0] < 0 or slots[slot, 0] > high else end), used


def read_line(
    data: ByteArray, position: int, grammar: Grammar, slots: Int64Array, values: Int32Array, used: int
) -> tuple[int, int, int]:
    """Fill the slots from the line at this position; return a bit set of the slots filled, or ODD.

    Returns also a place from which on the line's end is found, and how many values are used.
    """
    slots[:, 1] = UNSAID
    seen = 0
    guess = 0
    while True:
        position = skip_blanks(data, position)
        if data[position] == NEWLINE:
            return seen, position, used
        name = name_at(data, position, grammar, guess)
        if name == ODD:
            return ODD, position, used
        slot = grammar.slots[name]
        if seen >> slot & 1:
            return ODD, position, used
        seen |= 1 << slot
        guess = name + 1
        behind_name = position + grammar.name_lengths[name]
        position = skip_blanks(data, behind_name)
        end, used = value_at(data, position, slot, grammar, slots, values, used)
        # A value ends at a blank; none at all is one where a blank stands between this name and the next.
        if end == ODD or (data[end] > BLANK and (end > position or position == behind_name)):
            return ODD, position, used
        position = end


def is_possible(slots: Int64Array, values: Int32Array) -> bool:
    """Return whether the row has a replica, and no leader or ISR member outside its replicas."""
    first = slots[REPLICAS, 0]
    end = first + slots[REPLICAS, 1]
    if end <= first or slots[ISR, 1] < 0:
        return False
    isr_first = slots[ISR, 0]
    for place in range(isr_first - 1, isr_first + slots[ISR, 1]):
        broker = slots[LEADER, 0] if place < isr_first else values[place]
        is_replica = broker < 0
        for replica in range(first, end):
            is_replica |= values[replica] == broker
        if not is_replica:
            return False
    return True


def run_of(data: ByteArray, spans: Int32Array, count: int, begin: int, end: int) -> int:
    """Return the number of runs, one more than before if this text differs from the last run's text."""
    if count > 0 and spans[count - 1, 1] - spans[count - 1, 0] == end - begin:
        offset = spans[count - 1, 0] - begin
        place = begin
        while place < end and data[place] == data[place + offset]:
            place += 1
        if place == end:
            return count
    spans[count, 0] = begin
    spans[count, 1] = end
    return count + 1


def fill_partition(row: Int32Array, line: int, run: int, slots: Int64Array) -> None:
    """Fill one row of the partition table."""
    row[LINE] = line
    row[RUN] = run
    row[PARTITION_ID] = slots[PARTITION, 0]
    row[LEADER_ID] = slots[LEADER, 0]
    for column in range(LIST_COUNT):
        row[STARTS + column] = slots[REPLICAS + column, 0]
        row[LENGTHS + column] = slots[REPLICAS + column, 1]


def fill_topic(row: Int32Array, run: int, configs_run: int, slots: Int64Array, has_id: bool) -> None:
    """Fill one row of the topic table, except for its first three columns."""
    row[TOPIC_RUN] = run
    row[COUNT] = slots[PARTITION_COUNT, 0]
    row[FACTOR] = slots[REPLICATION_FACTOR, 0]
    row[CONFIGS_RUN] = configs_run
    row[ID_BEGIN] = slots[TOPIC_ID, 0] if has_id else 0
    row[ID_END] = slots[TOPIC_ID, 1] if has_id else 0


@compiled_with(
    skip_blanks, name_at, number_at, list_at, word_at, value_at, read_line, is_possible, run_of, fill_partition,
    fill_topic, allocates=False,
)  # fmt: skip
def scan_lines(data: ByteArray, grammar: Grammar, found: Found) -> Counts:
    """Parse the lines of `data`, whose last byte is a newline, into `found`.

    Each line is a row of one of the three tables there, or blank. Lines and runs count from 0.
    """
    partitions, topics, left, topic_spans, configs_spans, values, slots = found
    partition_count, topic_count, left_count, run_count, configs_count, blank_count, used = 0, 0, 0, 0, 0, 0, 0
    line = 0
    begin = 0
    while begin < data.shape[0]:
        seen, end, now_used = read_line(data, begin, grammar, slots, values, used)
        while data[end] != NEWLINE:
            end += 1
        is_short = end - begin <= LINE_BYTES_TAKEN_MAX
        is_partition = seen & (PARTITION_SLOTS | NO_PARTITION_SLOTS) == PARTITION_SLOTS
        if seen == 0:
            blank_count += 1
        elif seen > 0 and is_short and is_partition and is_possible(slots, values):
            run_count = run_of(data, topic_spans, run_count, slots[TOPIC, 0], slots[TOPIC, 1])
            fill_partition(partitions[partition_count], line, run_count - 1, slots)
            partition_count += 1
            used = now_used
        elif seen > 0 and is_short and seen & ~(1 << TOPIC_ID) == TOPIC_SLOTS:
            run_count = run_of(data, topic_spans, run_count, slots[TOPIC, 0], slots[TOPIC, 1])
            configs_count = run_of(data, configs_spans, configs_count, slots[CONFIGS, 0], slots[CONFIGS, 1])
            row = topics[topic_count]
            row[LINE], row[BEGIN], row[END] = line, begin, end
            fill_topic(row, run_count - 1, configs_count - 1, slots, seen >> TOPIC_ID & 1 == 1)
            topic_count += 1
        else:
            left[left_count, LINE], left[left_count, BEGIN], left[left_count, END] = line, begin, end
            left_count += 1
        line += 1
        begin = end + 1
    return Counts(partition_count, topic_count, left_count, run_count, configs_count, blank_count)


@compiled_with(allocates=False)
def fill_lists(partitions: Int32Array, values: Int32Array, widths: Int64Array, cells: Int32Array) -> None:
    """Fill `cells`: for each list a matrix with a row per partition and `widths[list]` columns, padded with -1.

    `cells` int32[P * sum(widths)], `widths` int64[LIST_COUNT]; the matrices stand one behind the other.
    """
    cell = 0
    for column in range(LIST_COUNT):
        for row in range(partitions.shape[0]):
            start = partitions[row, STARTS + column]
            length = partitions[row, LENGTHS + column]
            for place in range(widths[column]):
                cells[cell] = values[start + place] if place < length else UNSAID
                cell += 1


@compiled_with(allocates=False)
def join_texts(data: ByteArray, spans: Int32Array, joined: ByteArray) -> None:
    """Copy the bytes of each span (begin and end in the columns of `spans`), each followed by a newline."""
    place = 0
    for row in range(spans.shape[0]):
        for position in range(spans[row, 0], spans[row, 1]):
            joined[place] = data[position]
            place += 1
        joined[place] = NEWLINE
        place += 1
