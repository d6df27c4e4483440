"""`brokerside groups assign` on what kafka-consumer-groups printed: groups, moves, and what to give instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.placement.formats.samples import PRINTED

VERBOSE = PRINTED / "groups-members-verbose.txt"
TOPICS = PRINTED / "topics-describe.txt"

OF_3_9 = """
GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT
two words       c-1             /10.0.0.1       my client       3               audit(0), orders(0,1)
two words       c-2             /10.0.0.2       my client       1               orders(2)
two words       c-3             /10.0.0.3       c               0               -
"""
"""The form of 3.9: ConsumerGroupCommand prints topics with their partitions in parentheses, and no epochs."""


PAYMENTS = "eu-west-1.payments:0,1,2"


def test_each_group_of_a_printed_output_has_its_answer(typed: Any) -> None:
    status, out, err = typed(VERBOSE, "--topics", str(TOPICS))
    assert (status, err) == (0, "")
    classic, new = out.split("\n\ngroup 'new-protocol'")
    assert classic.startswith("group 'billing group': 2 members, 9 partitions of 2 topics, assignor range\n")
    assert "0 of 9 partitions move from the present assignment" in classic
    assert new.startswith(": 2 members, 9 partitions of 2 topics, assignor uniform\n")
    assert "slGrnCH7TGKtqd6a9JACbg (n-1)" in new
    assert "0 of 9 partitions move from the present assignment" in new


def test_the_assignment_that_kafka_made_of_a_group_is_the_one_given(typed: Any) -> None:
    """The running coordinator of 4.3.1 left both groups like this, by range of the client and by uniform."""
    _, out, _ = typed(VERBOSE, "--topics", str(TOPICS), "--json")
    answers = {one["group"]: one for one in json.loads(out)["groups"]}
    assert sorted(answers) == ["billing group", "new-protocol"]
    held = {
        member["member_id"]: {(run["topic"], number) for run in member["partitions"] for number in run["partitions"]}
        for one in answers.values()
        for member in one["members"]
    }
    assert held["6B1ahJCmSaSy_EIU-46i_Q"] == {
        *(("eu-west-1.payments", number) for number in range(3)), ("orders", 0), ("orders", 1),
    }  # fmt: skip
    assert held["static-2-80ee8b4c-107b-4a4f-b327-2886292a2bc0"] == {
        ("eu-west-1.payments", 0), ("eu-west-1.payments", 1), ("orders", 0), ("orders", 1), ("orders", 2),
    }  # fmt: skip
    assert {one["moved_count"] for one in answers.values()} == {0}
    assert {one["held_count"] for one in answers.values()} == {9}
    assert answers["new-protocol"]["clients"]["6B1ahJCmSaSy_EIU-46i_Q"] == "n-2"
    assert [one["assignor"] for one in answers.values()] == ["range", "uniform"]


def test_one_group_is_chosen_by_name_and_its_json_is_a_former_assignment(typed: Any, tmp_path: Path) -> None:
    _, out, _ = typed(VERBOSE, "--group", "billing group", "--json")
    assert json.loads(out)["group"] == "billing group"
    before = tmp_path / "before.json"
    before.write_text(out, encoding="utf-8")
    spec = {"topics": [{"topic": "orders", "partitions": 6}], "members": [{"member_id": "x", "topics": ["orders"]}]}
    assert "its member left" in typed(json.dumps(spec), "--previous", str(before))[1]
    assert typed(VERBOSE, "--group", "billing") == (
        2,
        "",
        "groups: groups-members-verbose.txt: no group 'billing' in it; it has 'billing group', 'new-protocol'\n",
    )


def test_without_a_dump_partitions_are_counted_from_those_seen_which_is_said(typed: Any) -> None:
    _, out, _ = typed(VERBOSE, "--group", "billing group")
    assert "partition counts are those seen in the assignment; --topics DUMP gives the real ones\n" in out
    assert "every member is taken to subscribe to all 2 topics of the group, as subscriptions are not printed\n" in out
    assert "those seen" not in typed(VERBOSE, "--topics", str(TOPICS))[1]


def test_partitions_that_a_topic_gained_are_given_out(typed: Any, tmp_path: Path) -> None:
    grown = tmp_path / "grown.txt"
    text = TOPICS.read_text(encoding="utf-8").replace("PartitionCount: 6", "PartitionCount: 7")
    last = next(line for line in text.splitlines() if "Topic: orders" in line and "Partition: 5" in line)
    grown.write_text(text.replace(last, f"{last}\n{last.replace('Partition: 5', 'Partition: 6')}"), encoding="utf-8")
    _, out, _ = typed(VERBOSE, "--group", "billing group", "--topics", str(grown))
    assert "orders-6: nobody -> " in out
    assert "1 of 9 partitions moves from the present assignment" in out


def test_the_form_of_3_9_is_read_and_moves_are_counted_one_by_one(typed: Any) -> None:
    status, out, err = typed(OF_3_9, "--assignor", "sticky", "--json")
    assert (status, err) == (0, "")
    (answer,) = json.loads(out)["groups"]
    assert answer["group"] == "two words"
    assert answer["clients"] == {"c-1": "my client", "c-2": "my client", "c-3": "c"}
    assert answer["moved_count"] == len([move for move in answer["moves"] if move["from"] is not None]) == 1
    assert answer["moves"][0]["from"] == "c-1"
    assert answer["moves"][0]["to"] == "c-3"


def test_groups_without_members_are_said_to_have_none_with_status_0(typed: Any) -> None:
    sentence = "Consumer group 'night ly' has no active members.\n"
    expected = "group 'night ly': no active members, so that there is nothing to assign\n"
    assert typed(sentence) == (0, expected, "")
    heading = VERBOSE.read_text(encoding="utf-8").splitlines()[-1]
    assert typed(f"\n{sentence}\n{heading}\n") == (0, expected, "")
    both = typed(VERBOSE.read_text(encoding="utf-8") + sentence)
    assert both[0] == 0
    assert both[1].endswith(expected)
    nightly = (PRINTED / "groups-no-members.txt").read_text(encoding="utf-8")
    status, out, _ = typed("\nConsumer group 'nightly' has no active members.\n" + nightly)
    assert (status, out) == (0, expected.replace("night ly", "nightly"))
    status, out, _ = typed(f"\n{heading}\n")
    assert (status, out) == (0, "no group with active members, so that there is nothing to assign\n")
    assert json.loads(typed(sentence, "--json")[1]) == {
        "version": 1,
        "groups": [],
        "empty_groups": ["night ly"],
        "rows": {"in": 0, "analysed": 0, "rejected": 0},
    }


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("groups-members.txt", "kafka-consumer-groups --describe --members"),
        ("groups-state.txt", "kafka-consumer-groups --describe --state"),
        ("groups-state-verbose.txt", "kafka-consumer-groups --describe --state"),
        ("groups-offsets.txt", "kafka-consumer-groups --describe"),
        ("groups-offsets-verbose.txt", "kafka-consumer-groups --describe"),
        ("groups-no-members.txt", "kafka-consumer-groups --describe"),
        ("groups-list.txt", "a list"),
    ],
)
def test_other_outputs_are_named_with_what_to_give_instead(typed: Any, name: str, what: str) -> None:
    status, out, err = typed(PRINTED / name)
    assert (status, out) == (2, "")
    said = what if what == "a list" else f"what {what} prints"
    assert err.startswith(f"groups: {name}: this is {said}")
    assert err.endswith("give what kafka-consumer-groups --describe --members --verbose prints\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("orders:2,3,4,x ", "'x' is no partition number; allowed are 0 to"),
        ("or ders:2,3,4,5", "illegal topic name"),
        ("orders:2,3,4   ", "#PARTITIONS is 4, but CURRENT-ASSIGNMENT names 3 partitions"),
        ("orders:2,3,4,4 ", "partition orders-4 is named twice"),
    ],
)
def test_rows_that_cannot_be_used_are_counted_and_end_with_status_1(typed: Any, damage: str, why: str) -> None:
    text = VERBOSE.read_text(encoding="utf-8").replace("orders:2,3,4,5 ", f"{damage} ", 1)
    status, out, err = typed(text)
    assert status == 1
    assert err.startswith("members.txt:7: ")
    assert why in err
    assert err.endswith("4 rows in = 3 analysed + 1 rejected: the answer leaves out the members of rejected rows\n")
    assert "group 'new-protocol': 1 member, " in out
    counted = json.loads(typed(text, "--json")[1])["rows"]
    assert counted == {"in": 4, "analysed": 3, "rejected": 1}


def test_a_member_given_twice_is_rejected_the_second_time(typed: Any) -> None:
    lines = VERBOSE.read_text(encoding="utf-8").splitlines()
    status, _, err = typed("\n".join([*lines[:4], lines[3], *lines[4:]]))
    assert status == 1
    assert "members.txt:5: member 'b-1-db3ee85d-1e80-4cef-90f3-e743ccb42795' was listed before" in err


@pytest.fixture
def moving() -> str:
    """What is printed while member n-2 still holds orders-5 of n-1's target, and nobody orders-1 of its own."""
    text = VERBOSE.read_text(encoding="utf-8")
    for member, before, now in (
        ("n-1", "4               3               orders:2,3,4,5", "3               3               orders:2,3,4  "),
        ("n-2", f"5{' ' * 15}3{' ' * 15}{PAYMENTS};orders:0,1", f"5{' ' * 15}3{' ' * 15}{PAYMENTS};orders:0,5"),
    ):
        assert f"{member}             {before} " in text
        text = text.replace(f"{member}             {before} ", f"{member}             {now} ")
    return text


def test_moves_are_counted_from_what_is_held_now_while_a_group_still_moves_to_its_target(
    typed: Any, moving: str
) -> None:
    """Uniform keeps to the target, so one partition moves."""
    status, out, _ = typed(moving, "--group", "new-protocol", "--topics", str(TOPICS))
    assert status == 0
    assert "orders-5: 6B1ahJCmSaSy_EIU-46i_Q -> slGrnCH7TGKtqd6a9JACbg" in out
    assert "orders-1: nobody -> 6B1ahJCmSaSy_EIU-46i_Q" in out
    assert "kept 7 of 8; with the best sizes at most 8 can stay\n" in out
    assert "1 of 8 partitions moves from the present assignment" in out
    assert "the group is still on its way from the present to the target assignment" in out


def test_assignors_are_compared_by_what_is_held_now_while_a_group_still_moves(typed: Any, moving: str) -> None:
    """Of 8 partitions held all can stay, with orders-1 for n-1; whatever starts from the target moves orders-5."""
    status, out, _ = typed(moving, "--group", "new-protocol", "--topics", str(TOPICS), "--compare")
    assert status == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[-7:]}
    assert rows["uniform"] == ["4", "5", "1", "7", "1", "-"]
    assert rows["sticky"] == ["4", "5", "1", "7", "1", "-"]
    assert rows["best"] == ["4", "5", "1", "8", "0"]
    documents = json.loads(typed(moving, "--group", "new-protocol", "--compare", "--json")[1])
    for answer in documents["assignors"]:
        moved = [move for move in answer["moves"] if move["from"] is not None]
        assert answer["measures"]["kept_count"] + len(moved) == 8, answer["assignor"]


def test_options_that_have_no_effect_are_refused(typed: Any, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text('{"members": []}', encoding="utf-8")
    status, _, err = typed(VERBOSE, "--previous", str(before))
    assert (status, err) == (
        2,
        "groups: --previous has no effect: groups-members-verbose.txt says what its members hold\n",
    )
    spec = '{"topics": [], "members": []}'
    for option, value in (("--group", "g"), ("--topics", str(TOPICS))):
        status, _, err = typed(spec, option, value)
        assert (status, err) == (
            2,
            f"groups: {option} is for what kafka-consumer-groups --describe --members --verbose prints; this is JSON\n",
        )
