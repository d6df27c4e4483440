"""kafka-topics --describe: its dialects, its traps, its damage, and its block reader held to the careful one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster import TopicView
from broker.errors import InputError
from placement.formats import describe, text
from placement.formats.describe_block import read_block
from placement.formats.parsed import ParsedDump
from placement.formats.read import read_dump
from placement.formats.rows import PartitionRows
from tests.placement.formats.samples import HEADER, ROW_0, ROW_1, parse, rows

PLAIN = {"replicas": (1, 2, 3), "isr": (1, 3), "elr": (2,), "last_known_elr": ()}


def test_kafka_4_prints_ids_elr_and_no_leader() -> None:
    dump = parse(HEADER + ROW_0 + ROW_1)
    view = dump.clusters[0]
    assert rows(view) == [
        ("orders", 0, 1, PLAIN),
        ("orders", 1, -1, {"replicas": (2, 3, 1), "isr": (), "elr": (), "last_known_elr": ()}),
    ]
    topic = view.topics[0]
    assert (topic.topic_id, topic.partition_count, topic.min_insync_replicas) == ("Ab12cdEFghIJklMNopQRst", 2, 2)
    assert topic.configs == (("min.insync.replicas", "2"), ("cleanup.policy", "compact,delete"))
    assert (dump.rows_in, dump.rows_rejected, dump.lines_passed_over, dump.notes) == (3, 0, 0, ())


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\t", "    "),
        lambda text: text.replace("\t", " "),
        lambda text: "".join("      " + line for line in text.splitlines(keepends=True)),
        lambda text: text.replace(": ", ":"),
        lambda text: text.replace(" \n", "\n"),
        lambda text: text.removesuffix("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\n", "\n\n==> Describe topic: x\n...\nWARN slow broker\n"),
    ],
    ids=["crlf", "spaces", "one space", "indented", "glued", "trimmed", "no end", "bom", "utf-16", "other lines"],
)
def test_how_the_text_was_carried_does_not_change_what_it_says(change: Callable[[str], str | bytes]) -> None:
    plain = parse(HEADER + ROW_0 + ROW_1)
    carried = parse(change(HEADER + ROW_0 + ROW_1))
    assert rows(carried.clusters[0]) == rows(plain.clusters[0])
    assert carried.clusters[0].topics == plain.clusters[0].topics
    assert carried.rejects == ()


OLD_HEADER = "Topic:old\tPartitionCount:1\tReplicationFactor:2\tConfigs:"
LINE = "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2"


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        (LINE + "\tOffline: ", "offline", ()),
        (LINE + "\tOffline: 2\tObservers: 2", "observers", (2,)),
        (LINE + "\tLiveObservers: 1", "observers", (1,)),
        (LINE + "\tAdding Replicas: 4\tRemoving Replicas: 1", "adding", (4,)),
        (LINE + "\tAdding Replicas: 4\tRemoving Replicas: 1,2", "removing", (1, 2)),
        (LINE + "\tElr: N/A\tLastKnownElr: 2", "last_known_elr", (2,)),
        (LINE + "\tFutureField: x", "replicas", (1, 2)),
        (LINE + "\tMarkedForDeletion: true", "isr", (1, 2)),
    ],
)
def test_a_field_of_some_version_is_read(line: str, column: str, value: tuple[int, ...]) -> None:
    assert rows(parse(line).clusters[0])[0][3][column] == value


def test_the_zookeeper_era_prints_no_space_and_minus_one() -> None:
    dump = parse(
        "Topic:old\tPartitionCount:1\tReplicationFactor:2\tConfigs:\n"
        "\tTopic: old\tPartition: 0\tLeader: -1\tReplicas: 1,2\tIsr: \n"
    )
    assert rows(dump.clusters[0]) == [("old", 0, -1, {"replicas": (1, 2), "isr": ()})]
    assert dump.clusters[0].topics[0].partition_count == 1


def test_a_filtered_describe_is_not_complete() -> None:
    dump = parse(ROW_0)
    assert not dump.clusters[0].partitions_complete
    assert dump.notes == ("no topic lines: a filtered describe lists only some partitions",)
    assert dump.clusters[0].topics[0].min_insync_replicas is None


def test_a_topic_marked_for_deletion_is_noted_once() -> None:
    dump = parse(
        HEADER + ROW_0.rstrip("\n") + "\tMarkedForDeletion: true\n" + ROW_1.rstrip("\n") + "\tMarkedForDeletion: true\n"
    )
    assert dump.notes == ("topic orders is marked for deletion",)


WHOLE = "allowed are whole numbers from 0 to"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("\tTopic: a\tPartition: x\tLeader: 1\tReplicas: 1\tIsr: 1", f"Partition is the text 'x'; {WHOLE} 10000000"),
        ("\tTopic: a\tPartition: -1\tLeader: 1\tReplicas: 1\tIsr: 1", f"Partition is -1; {WHOLE} 10000000"),
        ("\tTopic: a\tPartition: 10000001\tLeader: 1\tReplicas: 1\tIsr: 1", f"Partition is 10000001; {WHOLE} 10000000"),
        ("\tTopic: a\tPartition: 0\tReplicas: 1\tIsr: 1", "the field Leader is missing"),
        ("\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1", "the field Topic is missing"),
        ("\tTopic: a", "the field Partition is missing"),
        ("\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2,1\tIsr: 1", "Replicas names broker 1 twice"),
        ("\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1,1", "Isr names broker 1 twice"),
        ("\tTopic: a\tPartition: 0\tLeader: 3\tReplicas: 1,2\tIsr: 1", "Leader 3 is no replica (1,2)"),
        ("\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 3", "Isr names broker 3, which is no replica (1,2)"),
        ("\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: \tIsr: ", "the list of replicas is empty"),
        (
            "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,\tIsr: ",
            f"a broker id in Replicas is the text ''; {WHOLE} 2147483647",
        ),
        (
            "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 2147483648\tIsr: ",
            f"a broker id in Replicas is 2147483648; {WHOLE} 2147483647",
        ),
        ("\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1 2\tIsr: ", "unexpected text '2'"),
        ("\tTopic: a\tTopic: b\tPartition: 0", "the field Topic stands twice"),
        (
            "\tTopic: a/b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
            "illegal topic name; allowed are letters, digits, '.', '_' and '-', but not '.' or '..'",
        ),
        (
            f"\tTopic: {'a' * 250}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
            "the topic name has 250 characters; at most 249 are allowed",
        ),
        (
            "Topic: a\tPartitionCount: 1000000000000\tReplicationFactor: 1\tConfigs: ",
            f"PartitionCount is 1000000000000; {WHOLE} 10000000",
        ),
        (
            "Topic: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: nonsense",
            "Configs has 'nonsense'; it holds pairs name=value",
        ),
        (
            "Error while executing topic command : Timed out waiting for a node assignment.",
            "kafka-topics stopped here with an error; what it would have printed after this is missing",
        ),
    ],
)
def test_damage_is_put_aside_with_its_line_and_reason(line: str, reason: str) -> None:
    dump = parse(HEADER + ROW_0 + ROW_1 + line + "\n")
    assert [(reject.line, reject.reason, reject.value) for reject in dump.rejects] == [(4, reason, line.strip()[:200])]
    assert (dump.rows_in, dump.rows_analysed) == (4, 3)
    assert [topic.name for topic in dump.clusters[0].topics] == ["orders"]


def test_a_duplicate_names_the_first_line_and_a_second_topic_line_too() -> None:
    dump = parse(HEADER + ROW_0 + ROW_1 + HEADER + ROW_0)
    assert [(reject.line, reject.reason) for reject in dump.rejects] == [
        (4, "topic orders is already described in line 1"),
        (5, "partition 0 of orders is already described in line 2"),
    ]
    assert (dump.rows_in, dump.rows_analysed, dump.rows_rejected) == (5, 3, 2)


def test_bytes_that_are_no_utf_8_are_shown_escaped() -> None:
    dump = parse((HEADER + ROW_0).encode() + b"\tTopic: \xff\xfe\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n")
    assert dump.rejects[0].value == "Topic: \\xff\\xfe\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1"


def test_a_wildly_long_line_is_put_aside_without_being_held() -> None:
    long = b"\tTopic: a\tPartition: 0\tReplicas: " + b"1," * text.LINE_BYTES_MAX
    dump = read_dump([HEADER.encode(), long, long, b"\n", ROW_0.encode()], source="dump")
    assert [(reject.line, reject.reason) for reject in dump.rejects] == [(2, "the line is longer than 1048576 bytes")]
    assert rows(dump.clusters[0])[0][1] == 0


def test_one_absurd_list_does_not_widen_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement.formats.rows.MATRIX_CELLS_MAX", 40)
    wide = "\tTopic: wide\tPartition: 0\tLeader: 1\tReplicas: " + ",".join(map(str, range(1, 40))) + "\tIsr: 1\n"
    dump = parse("".join(LINE.replace("Partition: 0", f"Partition: {p}") + "\n" for p in range(9)) + wide)
    assert [reject.reason for reject in dump.rejects] == [
        "partition 0 of wide lists 39 brokers; a dump this long may list 4"
    ]
    assert dump.clusters[0].partitions.replicas.shape == (9, 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "dump: the input is empty"),
        ("\n \n", "dump: the input is empty"),
        (
            "hello\nworld\n",
            "dump:1: not a dump of a known format but a list of names, such as kafka-topics --list or "
            "kafka-consumer-groups --list prints; known are "
            "kafka-topics, kcat, kafka-reassign-partitions, cruise-control, zookeeper, "
            "aws-kafka, rpk, brokerside-snapshot (found 'hello')",
        ),
        (
            "Topic: a\tPartition: 0\nTopic: b\tPartition: 0\n",
            "dump:1: nothing can be used: the field Leader is missing (and 1 more entries cannot be used) "
            "(found 'Topic: a\\tPartition: 0')",
        ),
    ],
)
def test_an_input_without_anything_usable_is_one_clear_error(data: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(data)
    assert str(caught.value) == message


@pytest.mark.parametrize("sep", ["\t", "    "], ids=["tabs", "spaces"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_blocks_and_chunks_of_any_size_give_the_same(sep: str, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = HEADER + ROW_0 + ROW_1 + OLD_HEADER + "\n" + LINE + "\n" + HEADER + "noise\n" + ROW_0
    data = lines.replace("\t", sep).replace("\n", end).encode()
    whole = parse(data)
    assert len(whole.rejects) == 2
    for size in (1, 7, 64):
        chunks = [data[start : start + size] for start in range(0, len(data), size)]
        assert_equal(read_dump(chunks, source="dump"), whole)
        with monkeypatch.context() as patch:
            patch.setattr(text, "pieces", lambda cut: iter(cut))
            assert_equal(read_dump(chunks, source="dump"), whole)


def assert_equal(dump: ParsedDump, other: ParsedDump) -> None:
    """Assert that two dumps say the same, row by row."""
    assert rows(dump.clusters[0]) == rows(other.clusters[0])
    assert dump.clusters[0].topics == other.clusters[0].topics
    assert (dump.rejects, dump.notes, dump.rows_in) == (other.rejects, other.notes, other.rows_in)
    assert dump.lines_passed_over == other.lines_passed_over


IDS = st.lists(
    st.sampled_from(["0", "1", "2", "17", "1234567", "12345678", "2147483647", "2147483648", "", "x", "-1", "007"]),
    max_size=5,
)
LISTS = st.one_of(IDS.map(",".join), st.sampled_from(["1,2,3", "1,2", "3,2,1", "", "N/A", "1,,2", "1 2", "1,2,"]))
NAMES = st.sampled_from(["a", "b", "orders.v1", "abcdefgh", "abcdefghi", "..", ".", "a/b", "x" * 249, "x" * 250, "é"])


@st.composite
def describe_lines(draw: st.DrawFn) -> str:
    """Lines near the common shape: mostly whole, sometimes not."""
    leader = draw(st.sampled_from(["1", "2", "none", "-1", "", "1,2", "x", "99"]))
    partition = draw(st.sampled_from(["0", "1", "5", "9999999", "10000001", "x", "", "1,2", "N/A"]))
    fields = [
        f"Topic: {draw(NAMES)}",
        f"Partition: {partition}",
        f"Leader: {leader}",
        f"Replicas: {draw(LISTS)}",
        f"Isr: {draw(LISTS)}",
    ]
    more = draw(
        st.lists(
            st.sampled_from(["Elr", "LastKnownElr", "Offline", "Observers", "LiveObservers", "Adding Replicas", "Zed"]),
            max_size=3,
        )
    )
    fields += [f"{name}: {draw(LISTS)}" for name in more]
    start = draw(st.sampled_from(["\t", "", "  "]))
    return start + draw(st.sampled_from(["\t", "\t", "\t", " "])).join(fields)


@st.composite
def topic_lines(draw: st.DrawFn) -> str:
    """Topic lines of every dialect, mostly whole, sometimes not."""
    odd_counts = st.sampled_from(["0", "1", "007", "9999999", "10000001", "32768", "-1", "", "x", "1,2", "3 "])
    counts = st.one_of(st.just("12"), st.just("3"), st.just("6"), odd_counts)
    names = st.one_of(st.sampled_from(["a", "b", "orders.v1"]), NAMES)
    configs = st.sampled_from(
        ("", "a=b", "min.insync.replicas=2,a=b,c", "min.insync.replicas=x", "min.insync.replicas=0", "nonsense",
         "a=b  c", "a=b Configs: c=d", "x=Topic: b", "é=ü", "a=foo:", "a=b\tMarkedForDeletion: true", "\x00a=b",
         "a=b\r", "  ")
    )  # fmt: skip
    ids = st.sampled_from(["Ab12cdEFghIJklMNopQRst", "", "_-", "x" * 64, "x" * 65, "a b", "é", "a/b"])
    fields = [("Topic", draw(names))]
    if draw(st.booleans()):
        fields.append(("TopicId", draw(ids)))
    fields += [("PartitionCount", draw(counts)), ("ReplicationFactor", draw(counts)), ("Configs", draw(configs))]
    if draw(st.integers(0, 9)) == 0:
        fields.pop(draw(st.integers(0, len(fields) - 1)))
    colon = draw(st.sampled_from([": ", ": ", ":", ":  "]))
    start = draw(st.sampled_from(["", "", "\t", "  "]))
    return start + draw(st.sampled_from(["\t", "\t", " ", "    "])).join(name + colon + value for name, value in fields)


def lines_taken(data: bytes) -> list[int]:
    """Return the numbers of the lines that the regular expression takes."""
    taken_count, left = read_block(data, 1, PartitionRows("dump"), [])
    numbers = {number for number, _ in left}
    taken = [number for number in range(1, data.count(b"\n") + 1) if number not in numbers]
    assert len(taken) == taken_count
    return taken


LINES = st.lists(st.one_of(describe_lines(), topic_lines()), min_size=1, max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\n \t\n"])


def leave_all(
    data: bytes, first_line: int, _rows: PartitionRows, _declared: list[tuple[int, TopicView]]
) -> tuple[int, list[tuple[int, bytes]]]:
    """Leave every line of a block to the careful reader."""
    return 0, list(enumerate(data[:-1].split(b"\n"), start=first_line))


def read_both_ways(data: bytes) -> tuple[ParsedDump | str, ParsedDump | str]:
    """Return the dump, or the error in words, read as users read it, and all with care."""
    found: list[ParsedDump | str] = []
    for reader in (read_block, leave_all):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(describe, "read_block", reader)
            try:
                found.append(parse(data, format="kafka-topics"))
            except InputError as error:
                found.append(str(error))
    return found[0], found[1]


@given(LINES, ENDS)
def test_a_dump_is_the_same_read_in_blocks_and_with_care(lines: list[str], end: str) -> None:
    one, other = read_both_ways((end.join(lines) + end).encode())
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
    else:
        assert_equal(one, other)


@pytest.mark.deep
def test_a_dump_of_several_blocks_is_the_same_read_in_blocks_and_with_care() -> None:
    lines = []
    for topic in range(6_000):
        lines.append(HEADER.replace("orders", f"orders.{topic % 5_990}"))
        lines += [LINE.replace(" a\tPartition: 0", f" orders.{topic}\tPartition: {p}") + "\n" for p in range(4)]
        lines += ["\n", "WARN slow broker\n", LINE + "\tFutureField: x\n"][: max(topic % 100 - 96, 0)]
    data = "".join(lines).encode()
    assert len(data) > text.BLOCK_BYTES
    careful, by_default = read_both_ways(data)[1], parse(data)
    assert isinstance(careful, ParsedDump)
    assert_equal(careful, by_default)
    assert len(careful.rejects) == 10 + 59


@pytest.mark.parametrize(
    "topic_line",
    [HEADER.rstrip("\n"), "Topic: a\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: ", OLD_HEADER],
    ids=["kafka 4", "kafka 2.5", "kafka 2.4"],
)
@pytest.mark.parametrize("sep", ["\t", "    ", " "], ids=["tabs", "spaces", "one space"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_the_regular_expression_takes_the_common_shapes(topic_line: str, sep: str, end: str) -> None:
    lines = [topic_line, LINE.replace("Leader: 1", "Leader: none"), LINE.replace("Leader: 1", "Leader: -1")]
    lines += [LINE.replace("Isr: 1,2", "Isr: ") + "\tElr: N/A\tLastKnownElr: N/A"]
    lines += [LINE.replace("Partition: 0", f"Partition: {p}") + "\tElr: \tLastKnownElr: " for p in range(100)]
    lines += [LINE + "\tOffline: 2\tObservers: \tAdding Replicas: 4\tRemoving Replicas: 1"]
    data = (end.join(lines) + end).replace("\t", sep).encode()
    assert lines_taken(data) == list(range(1, len(lines) + 1))


@pytest.mark.parametrize(
    "line",
    [
        LINE.replace("Replicas: 1,2", "Replicas: 1,2,1"),
        LINE.replace("Isr: 1,2", "Isr: 1,1"),
        LINE.replace("Isr: 1,2", "Isr: 3"),
        LINE.replace("Isr: 1,2", "Isr: 1,"),
        LINE.replace("Isr: 1,2", "Isr: N/A"),
        LINE.replace("Isr: 1,2", "Isr:Elr: 1"),
        LINE.replace("Isr: 1,2", "Isr: 1Elr: 1"),
        LINE.replace("Leader: 1", "Leader: 3"),
        LINE.replace("Leader: 1", "Leader: -12"),
        LINE.replace("Leader: 1", "Leader: nonet"),
        LINE.replace("Leader: 1", "Leader: "),
        LINE + "\tIsr: 1",
        LINE + "\tTopic: a",
        LINE + "\tObservers: 1\tLiveObservers: 1",
        LINE + "\tElr: 99999999999999999999",
        LINE + "\tConfigs: a=b",
        LINE + " " * 3_000,
        LINE.replace("1,2", ",".join(map(str, range(9)))),
        OLD_HEADER + "nonsense",
        OLD_HEADER + "a=" + "b" * 9_000,
        OLD_HEADER.replace("\tPartitionCount:1", ""),
    ],
)
def test_the_regular_expression_leaves_what_is_odd(line: str) -> None:
    assert lines_taken(f"{LINE}\n{line}\n{LINE}\n".encode()) == [1, 3]
    one, other = read_both_ways(f"{LINE}\n{line}\n".encode())
    assert isinstance(one, ParsedDump)
    assert isinstance(other, ParsedDump)
    assert_equal(one, other)


@pytest.mark.parametrize("sep", ["\t", "    "], ids=["tabs", "spaces"])
@pytest.mark.parametrize("configs", ["", "a=b", "cleanup.policy=compact,delete"])
def test_a_topic_line_marked_for_deletion_is_noted_and_its_configs_stay_whole(sep: str, configs: str) -> None:
    line = f"Topic: a\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: {configs}"
    for dump in read_both_ways((f"{line}\tMarkedForDeletion: true\n{LINE}\n").replace("\t", sep).encode()):
        assert isinstance(dump, ParsedDump)
        assert dump.notes == ("topic a is marked for deletion",)
        assert dump.clusters[0].topics == parse(f"{line}\n{LINE}\n").clusters[0].topics


@pytest.mark.parametrize("name", ["Adding", "Removing", "Isr", "none"])
def test_a_topic_may_have_the_name_of_a_field(name: str) -> None:
    for dump in read_both_ways((HEADER + ROW_0 + ROW_1).replace("orders", name).encode()):
        assert isinstance(dump, ParsedDump)
        assert (dump.rows_rejected, dump.clusters[0].topics[0].name) == (0, name)


def test_each_distinct_text_of_configs_is_parsed_once() -> None:
    topics = parse("".join(HEADER.replace("orders", f"orders{number}") for number in range(50))).clusters[0].topics
    assert len({id(topic.configs) for topic in topics}) == 1
