"""`brokerside groups assign`, as a user types it: what is printed, refused, and with which exit status."""

from __future__ import annotations

import json
from typing import Any

import pytest

ALL_FOUR = ["t0", "t1", "t2", "t3"]
FOUR: dict[str, Any] = {
    "topics": [{"topic": name, "partitions": 2} for name in ALL_FOUR],
    "members": [{"member_id": "c0", "topics": ALL_FOUR}, {"member_id": "c2", "topics": ALL_FOUR}],
}
BEFORE: dict[str, Any] = {
    "generation": 3,
    "members": [
        {"member_id": "c0", "partitions": [{"topic": "t0", "partition": 0}, {"topic": "t1", "partitions": [1]}]},
        {"member_id": "c1", "partitions": [{"topic": "t0", "partition": 1}, {"topic": "t2", "partition": 0}]},
        {"member_id": "c2", "partitions": [{"topic": "t1", "partition": 0}, {"topic": "t2", "partition": 1}]},
    ],
}


def test_an_assignment_is_shown_with_what_moved_and_why_and_the_best_that_could_be(typed: Any) -> None:
    assert typed(FOUR, "--assignor", "sticky", before=BEFORE) == (
        0,
        "member  count  partitions\n"
        "c0          4  t0-0 t1-1 t0-1 t3-0\n"
        "c2          4  t1-0 t2-1 t2-0 t3-1\n"
        "\n"
        "t0-1: c1 -> c0, its member left\n"
        "t2-0: c1 -> c2, its member left\n"
        "t3-0: nobody -> c0, nobody held it\n"
        "t3-1: nobody -> c2, nobody held it\n"
        "\n"
        "sizes 4 to 4, best 4 to 4; differences over all pairs 0, best 0\n"
        "kept 4 of 6; with the best sizes at most 4 can stay\n",
        "",
    )


def test_a_partition_that_two_members_claim_stays_with_neither_and_is_counted_so_on_both_sides(typed: Any) -> None:
    spec = {
        "topics": [{"topic": "t", "partitions": 2}],
        "members": [{"member_id": name, "topics": ["t"]} for name in ("a", "b")],
    }
    both = {"topic": "t", "partitions": [0, 1]}
    before = {
        "generation": 3,
        "members": [
            {"member_id": "a", "partitions": [both]},
            {"member_id": "b", "partitions": [{"topic": "t", "partition": 1}]},
        ],
    }
    _, out, _ = typed(spec, "--assignor", "sticky", before=before)
    assert "a           1  t-0\nb           1  t-1\n" in out
    assert out.endswith("kept 1 of 2; with the best sizes at most 1 can stay\n")


def test_without_a_former_assignment_nothing_is_said_of_moves(typed: Any) -> None:
    _, out, _ = typed(FOUR)
    assert out.splitlines()[-2:] == ["", "sizes 4 to 4, best 4 to 4; differences over all pairs 0, best 0"]
    assert "->" not in out


def test_all_assignors_are_compared_side_by_side(typed: Any) -> None:
    status, out, _ = typed(FOUR, "--compare", before=BEFORE)
    lines = out.splitlines()
    assert status == 0
    assert lines[0].split() == ["assignor", "min", "max", "differences", "kept", "moved", "in", "rack"]
    assert {line.split()[0]: line.split()[4] for line in lines[1:]} == {
        "range": "2",
        "roundrobin": "2",
        "sticky": "4",
        "cooperative-sticky": "4",
        "uniform": "4",
        "server-range": "2",
        "best": "4",
    }


def test_json_has_all_and_can_be_the_former_assignment_of_the_next_call(typed: Any) -> None:
    _, out, _ = typed(FOUR, "--assignor", "sticky", "--json", before=BEFORE)
    answer = json.loads(out)
    assert answer["members"][0] == {
        "member_id": "c0",
        "partitions": [
            {"topic": "t0", "partitions": [0]},
            {"topic": "t1", "partitions": [1]},
            {"topic": "t0", "partitions": [1]},
            {"topic": "t3", "partitions": [0]},
        ],
    }
    assert answer["moves"][0] == {"topic": "t0", "partition": 1, "from": "c1", "to": "c0", "why": "left"}
    _, out, _ = typed(FOUR, "--assignor", "sticky", "--json", before=answer)
    assert json.loads(out)["moves"] == []
    _, out, _ = typed(FOUR, "--compare", "--json")
    assert len(json.loads(out)["assignors"]) == 6


def test_the_table_that_kafkas_tool_prints_can_be_the_former_assignment(typed: Any) -> None:
    table = (
        "\nGROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\r\n"
        "g     t0    0         5              5              0   c2          /10.0.0.1 x\r\n"
        "g     t3    1         -              5              -   -           -    -\r\n"
    )
    _, out, _ = typed(FOUR, "--assignor", "sticky", before=table)
    assert "kept 1 of 1" in out
    assert "c2          4  t0-0 " in out


def test_what_kafka_throws_is_said_and_ends_with_status_1(typed: Any) -> None:
    nobody = {"topics": [{"topic": "t", "partitions": 1}], "members": []}
    assert typed(nobody, "--assignor", "sticky") == (
        1,
        "",
        "sticky: Kafka throws java.lang.ArithmeticException: / by zero\n",
    )
    status, out, _ = typed(nobody, "--compare")
    assert status == 1
    assert (
        "Kafka throws java.lang.IllegalArgumentException: CircularIterator can only be used on non-empty lists" in out
    )
    _, out, _ = typed(nobody, "--assignor", "sticky", "--json")
    assert json.loads(out)["error"] == {"class": "java.lang.ArithmeticException", "message": "/ by zero"}


def test_defects_are_kafkas_unless_the_corrected_answer_is_asked_for(typed: Any) -> None:
    asked = {
        "topics": [{"topic": "t", "partitions": 3}],
        "members": [{"member_id": "a", "topics": []}, {"member_id": "b", "topics": ["t"]}],
    }
    assert "a           2  t-0 t-2" in typed(asked, "--assignor", "sticky")[1]
    assert "a           0\n" in typed(asked, "--assignor", "sticky", "--corrected")[1]


def test_racks_count_and_names_are_printed_escaped(typed: Any) -> None:
    asked = {
        "topics": [{"topic": "t", "partitions": 2, "replica_racks": [["b"], ["a"]]}],
        "members": [
            {"member_id": "x\u001b[31m", "topics": ["t"], "rack_id": "a"},
            {"memberId": "y", "topics": ["t"], "RACK-ID": "b"},
        ],
    }
    _, out, _ = typed(asked)
    assert "\x1b" not in out
    assert "x\\x1b[31m      1  t-1" in out
    assert out.endswith("read within the rack 2 of 2\n")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("[]", "members.txt: not one JSON object; `brokerside groups assign --help` shows one (found '[]')"),
        (
            "# brokerside\n",
            "members.txt: not one JSON object; `brokerside groups assign --help` shows one (found '# brokerside\\n')",
        ),
        ({}, "group.json: topics is missing or no list"),
        ({"topics": [], "members": 3}, "group.json: members is missing or no list (found '3')"),
        (
            {"topics": [{"topic": "a/b", "partitions": 1}], "members": []},
            "group.json: topics[0]: illegal topic name; allowed are letters, digits, '.', '_' and '-', "
            "but not '.' or '..' (found 'a/b')",
        ),
        (
            {"topics": [{"topic": "t", "partitions": -1}], "members": []},
            "group.json: topics[0].partitions is -1; allowed are whole numbers from 0 to 10000000",
        ),
        (
            {"topics": [{"topic": "t", "partitions": 1}] * 2, "members": []},
            "group.json: topic is given twice (found 't')",
        ),
        (
            {"topics": [], "members": [{"member_id": "m", "topics": []}] * 2},
            "group.json: member is given twice (found 'm')",
        ),
        ({"topics": [], "members": [{"topics": []}]}, "group.json: members[0] has no member_id"),
        ({"topics": [], "members": [{"member_id": "m"}]}, "group.json: members[0].topics is missing or no list"),
        (
            {"topics": [], "members": [{"member_id": "m", "topics": [], "rack_id": 3}]},
            "group.json: members[0]: rackid is no text (found '3')",
        ),
        (
            {"topics": [{"topic": "t", "partitions": 2, "replica_racks": [["a"]]}], "members": []},
            "group.json: topics[0].replica_racks has 1 lists for 2 partitions",
        ),
        (
            {"topics": [{"topic": "t", "partitions": 1, "replica_racks": ["a"]}], "members": []},
            "group.json: topics[0].replica_racks is no list of lists of racks (found '[\"a\"]')",
        ),
    ],
)
def test_a_group_that_cannot_be_used_ends_with_one_sentence_and_status_2(
    typed: Any, spec: object, message: str
) -> None:
    assert typed(spec) == (2, "", f"groups: {message}\n")


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (
            "nothing of the kind",
            "before.json: neither a JSON object nor a table with the columns TOPIC, PARTITION and CONSUMER-ID "
            "(found 'nothing of the kind')",
        ),
        (
            "TOPIC PARTITION CONSUMER-ID\nt x c0",
            "before.json:2: PARTITION is the text 'x'; allowed are whole numbers from 0 to 2147483647 (found 't x c0')",
        ),
        (
            {"members": [{"member_id": "m", "partitions": [{"topic": "t"}]}]},
            "before.json: a partition in members[0].partitions[0] is missing; "
            "allowed are whole numbers from 0 to 2147483647",
        ),
        (
            {"generation": -2, "members": []},
            "before.json: generation is -2; allowed are whole numbers from -1 to 2147483647",
        ),
    ],
)
def test_a_former_assignment_that_cannot_be_used_is_refused_likewise(typed: Any, before: object, message: str) -> None:
    assert typed(FOUR, before=before) == (2, "", f"groups: {message}\n")


def test_an_unknown_assignor_and_a_wrong_topic_id_are_refused(typed: Any) -> None:
    status, _, err = typed(FOUR, "--assignor", "magic")
    assert (status, err.split(";")[0]) == (2, "groups: assignor 'magic' is not installed")
    named = {
        "topics": [{"topic": "t", "partitions": 1, "topic_id": "short"}],
        "members": [{"member_id": "m", "topics": ["t"]}],
    }
    status, _, err = typed(named, "--assignor", "uniform")
    assert (status, err) == (
        2,
        "groups: topic 't' has the id 'short'; an id is 22 characters of URL-safe base64\n",
    )


def test_of_many_moves_the_first_are_shown(typed: Any) -> None:
    many = {"topics": [{"topic": "t", "partitions": 60}], "members": [{"member_id": "m", "topics": ["t"]}]}
    before = {"members": [{"member_id": "gone", "partitions": [{"topic": "t", "partitions": list(range(60))}]}]}
    assert "and 10 more; --json shows all\n" in typed(many, before=before)[1]


TWO: dict[str, Any] = {
    "topics": [{"topic": "t", "partitions": 4}],
    "members": [{"member_id": name, "topics": ["t"]} for name in ("a", "b")],
}
ALL_ON_A: dict[str, Any] = {"members": [{"member_id": "a", "partitions": [{"topic": "t", "partitions": [0, 1, 2, 3]}]}]}


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "uniform"])
def test_steps_first_take_partitions_from_their_member_and_then_give_them_to_another(typed: Any, assignor: str) -> None:
    status, out, _ = typed(TWO, "--assignor", assignor, "--until-stable", before=ALL_ON_A)
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith(("step", "b ", "nothing"))] == [
        "step 1: 2 partitions given up, 0 partitions taken",
        "b           0",
        "step 2: 0 partitions given up, 2 partitions taken",
        "b           2  t-2 t-3",
        "nothing moves after 2 steps",
    ]


def test_an_eager_assignor_takes_one_step_and_a_settled_group_moves_nothing(typed: Any) -> None:
    _, out, _ = typed(TWO, "--assignor", "range", "--until-stable", before=ALL_ON_A)
    assert "step 1: 0 partitions given up, 2 partitions taken\n" in out
    assert out.endswith("nothing moves after 1 step\n")
    settled = {"members": [{"member_id": "a", "partitions": [{"topic": "t", "partitions": [0, 1, 2, 3]}]}]}
    alone = TWO | {"members": TWO["members"][:1]}
    _, out, _ = typed(alone, "--assignor", "cooperative-sticky", "--until-stable", before=settled)
    assert out.startswith("step 1: nothing moves\n")


def test_steps_as_json_end_with_an_answer_that_previous_reads_back(typed: Any) -> None:
    arguments = ("--assignor", "cooperative-sticky", "--until-stable", "--json")
    answer = json.loads(typed(TWO, *arguments, before=ALL_ON_A)[1])
    assert [step["what"] for step in answer["steps"]] == [
        "2 partitions given up, 0 partitions taken",
        "0 partitions given up, 2 partitions taken",
    ]
    assert answer["is_stable"]
    again = json.loads(typed(TWO, *arguments, before=answer)[1])
    assert [step["moves"] for step in again["steps"]] == [[]]


def test_steps_of_one_assignor_are_not_those_of_all(typed: Any) -> None:
    status, _, err = typed(TWO, "--compare", "--until-stable")
    assert (status, err) == (2, "groups: --until-stable follows one assignor, and --compare asks all\n")
