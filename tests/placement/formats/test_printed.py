"""What tools of Kafka 4.3.1 printed and places no replica: named, with what to give instead."""

from __future__ import annotations

import pytest

from broker.errors import InputError
from placement.balance.loads import loads
from placement.balance.reachable import Classes, Groups
from placement.formats.read import FORMATS
from placement.formats.sizes import read_sizes
from tests.placement.formats.samples import PRINTED, parse


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("groups-offsets.txt", "kafka-consumer-groups --describe"),
        ("groups-offsets-verbose.txt", "kafka-consumer-groups --describe"),
        ("groups-no-members.txt", "kafka-consumer-groups --describe"),
        ("groups-members.txt", "kafka-consumer-groups --describe --members"),
        ("groups-members-verbose.txt", "kafka-consumer-groups --describe --members"),
        ("groups-state.txt", "kafka-consumer-groups --describe --state"),
        ("groups-state-verbose.txt", "kafka-consumer-groups --describe --state"),
        ("get-offsets.txt", "kafka-get-offsets"),
        ("quorum-status.txt", "kafka-metadata-quorum describe --status"),
        ("quorum-replication.txt", "kafka-metadata-quorum describe --replication"),
        ("reassign-list.txt", "kafka-reassign-partitions --list"),
        ("reassign-list-none.txt", "kafka-reassign-partitions --list"),
        ("reassign-verify.txt", "kafka-reassign-partitions --verify"),
        ("reassign-cancel.txt", "kafka-reassign-partitions --cancel"),
    ],
)
def test_the_output_of_other_tools_is_named_with_what_to_give_instead(name: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        parse((PRINTED / name).read_bytes())
    assert str(caught.value).startswith(f"dump: this is what {what} prints, ")
    assert "give what kafka-topics --describe prints" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Consumer group 'night ly' has no active members.\n", "this is what kafka-consumer-groups --describe"),
        ((PRINTED / "topics-list.txt").read_text(), "a known format but a list of names, such as kafka-topics --list"),
        (
            (PRINTED / "groups-list.txt").read_text(),
            "but a list of names, such as kafka-topics --list",
        ),
        ("Dear reader, this is no dump\nat all\n", "not a dump of a known format; known are"),
        ("Hello\nthis is some text\nof our team\n", "not a dump of a known format; known are"),
        ("Notes\nof today.\n", f"not a dump of a known format; known are {', '.join(FORMATS)}"),
    ],
)
def test_a_sentence_a_list_of_names_and_prose_are_called_so(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert says in str(caught.value)


def test_what_tools_print_with_whole_assignments_is_still_read() -> None:
    for name in (
        "topics-describe.txt",
        "after-topics-under-replicated.txt",
        "reassign-generate.txt",
        "reassign-execute.txt",
    ):
        assert parse((PRINTED / name).read_bytes()).rows_analysed, name


def test_topic_lines_alone_say_nothing_of_brokers() -> None:
    dump = parse((PRINTED / "topics-with-overrides.txt").read_bytes())
    (view,) = dump.clusters
    assert not view.partitions_complete
    assert len(view.topics) == dump.rows_analysed == 4
    assert view.notes == ("no partition lines, as with --topics-with-overrides: nothing is known of the brokers",)


def test_the_bytes_of_the_classes_are_those_of_the_replicas_but_for_rounding() -> None:
    sizes = read_sizes([(PRINTED / "log-dirs.txt").read_bytes()], source="log-dirs.txt")
    plain = parse((PRINTED / "topics-describe.txt").read_bytes()).clusters[0]
    view = sizes.apply(plain)
    held = loads(view).brokers.size_bytes
    classes = Classes.of_view(view, Groups.of_view(view))
    assert classes is not None
    assert held is not None
    assert classes.bytes is not None
    rest = int(held.sum()) - int((classes.bytes * classes.factors).sum())
    assert 0 <= rest < view.partitions.replica_count
