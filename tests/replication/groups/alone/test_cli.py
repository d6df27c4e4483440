"""`groups simulate`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.cli import run
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from replication.groups.alone.cli import simulate_command
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.plan import EventKind

EVENTS = {
    "minutes": 2,
    "topics": {"orders": 2},
    "members": [{"name": "a", "topics": ["orders"]}, {"name": "b", "topics": ["orders"], "instance_id": "i1"}],
    "events": [
        {"at_ms": 60000, "kind": "start", "target": "b"},
        {"at_ms": 0, "kind": "start", "target": "a"},
        {"at_ms": 90000, "kind": "add-partitions", "target": "orders", "count": 3},
    ],
}


def simulate(*arguments: str) -> int:
    return run(simulate_command, "brokerside groups simulate", list(arguments))


def test_a_scenario_is_shown_with_a_column_for_each_protocol_that_it_is_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert simulate("--scenario", "S66") == 0
    printed = capsys.readouterr().out
    assert SCENARIOS["S66"].how in printed
    for word in ("eager", "cooperative-sticky", "consumer", "rebalance-latency-avg ms", "given up and got back"):
        assert word in printed
    assert printed.rstrip().endswith("G1 to G9 hold")


def test_the_incident_says_which_program_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--scenario", "shared-group-id") == 0
    printed = capsys.readouterr().out
    assert "reads-a: IllegalStateException: No current assignment for partition a-0" in printed


def test_json_has_every_count_and_is_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--seed",
        "2",
        "--protocol",
        "eager",
        "--members",
        "2",
        "--partitions",
        "3",
        "--minutes",
        "5",
        "--json",
    ]
    assert simulate(*arguments) == 0
    first = capsys.readouterr().out
    assert simulate(*arguments) == 0
    assert capsys.readouterr().out == first
    (group_run,) = json.loads(first)["lives"]
    assert (group_run["protocol"], group_run["assignor"], group_run["findings"]) == ("eager", "range", [])
    assert group_run["commits"]["NONE"] > 0


def test_a_longer_assignment_interval_leaves_partitions_unowned_for_longer(capsys: pytest.CaptureFixture[str]) -> None:
    """KIP-1263: who joins within the interval waits for the next target."""

    def unowned_ms(*arguments: str) -> int:
        small = ("--members", "3", "--partitions", "4", "--minutes", "7")
        assert simulate("--seed", "6", "--protocol", "consumer", "--json", *small, *arguments) == 0
        return int(json.loads(capsys.readouterr().out)["lives"][0]["unowned_ms"])

    default = unowned_ms()
    assert unowned_ms("--assignment-interval-ms", "1000") == default
    assert unowned_ms("--assignment-interval-ms", "15000") > default
    assert unowned_ms("--assignment-interval-ms", "0") <= default


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--kafka", "4.2"), "--assignment-interval-ms needs Kafka 4.3 or later (KIP-1263)"),
        (("--protocol", "eager"), "--assignment-interval-ms is a setting of the consumer protocol, which is not run"),
    ],
)
def test_an_assignment_interval_that_nothing_reads_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert simulate("--assignment-interval-ms", "5", *arguments) == 2
    assert capsys.readouterr().err == f"brokerside groups simulate: {sentence}\n"


def test_the_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--list-scenarios") == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == list(SCENARIOS)


def test_events_of_a_file_are_played_in_order_of_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps(EVENTS))
    assert simulate("--events", str(file), "--protocol", "consumer", "--json") == 0
    (group_run,) = json.loads(capsys.readouterr().out)["lives"]
    assert group_run["rebalance_count"] == 3
    assert group_run["settled_ms"] > 90_000


def test_names_of_others_are_escaped_in_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "[red]e\x1b.json"
    member = {"name": "<b>\x1b[31m", "topics": ["t"], "remembers_partitions": True}
    events = [{"at_ms": 0, "kind": "start", "target": member["name"]}]
    file.write_text(json.dumps({"minutes": 1, "topics": {"t": 1}, "members": [member], "events": events}))
    assert simulate("--events", str(file)) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "[red]e\\x1b.json: events of a file" in printed


def test_a_broken_invariant_is_reported_with_status_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        CooperativeStickyAssignor, "assign", lambda self, group, entropy: StickyAssignor().assign(group, entropy)
    )
    assert simulate("--scenario", "S66", "--protocol", "cooperative") == 1
    assert "cooperative: BROKEN at 6" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--scenario", "S99"),
            "there is no scenario 'S99'; the nearest is 'S69'; "
            "`brokerside groups simulate --list-scenarios` prints all names\n",
        ),
        (("--assignor", "sticky"), "--assignor needs one --protocol"),
        (("--assignor", "nobody", "--protocol", "eager"), "assignor 'nobody' is not installed"),
        (
            ("--assignor", "uniform", "--protocol", "eager"),
            "a group of the eager protocol cannot be assigned by 'uniform'",
        ),
        (("--minutes", "3"), "3 minutes are too few for a seeded life; at least 5 are needed"),
    ],
)
def test_what_cannot_be_played_is_refused_in_a_sentence(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"brokerside groups simulate: {message}")


def changed(**entries: object) -> dict[str, object]:
    return {**EVENTS, **entries}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "not one JSON object"),
        (changed(minutes=0), "0 milliseconds cannot be played"),
        (changed(minutes="2"), "minutes is no whole number from 0 to 10080 (found '2')"),
        (changed(colour="red"), "the scenario has a key that is not known"),
        (changed(topics={"a b": 1}), "illegal topic name"),
        (changed(topics={"orders": 100_000}), "topics.orders is no whole number from 1 to 2000 (found '100000')"),
        (changed(members="a"), "members is missing or no list of objects"),
        (changed(members=[{"name": "a", "topics": []}]), "members[0].topics is missing or no list of topics"),
        (changed(members=[{"topics": ["orders"]}]), "members[0].name is missing or no text"),
        (
            changed(members=[{"name": "b", "topics": ["orders"], "instance_id": "\ud800"}]),
            "members[0].instance_id has half of a surrogate pair, which is no character",
        ),
        (
            changed(members=[{"name": "a", "topics": ["orders"], "revoke_ms": -1}]),
            "members[0].revoke_ms is no whole number",
        ),
        (changed(events=[{"at_ms": 0, "kind": "explode"}]), "events[0].kind is not known; there are add-partitions, "),
        (changed(events=[{"at_ms": 0, "kind": "start", "target": "z"}]), "there is no member 'z' for start"),
        (changed(events=[{"at_ms": 0, "kind": "add-partitions", "target": "z"}]), "there is no topic 'z'"),
        (changed(members=[{"name": "a", "topics": ["orders"]}] * 2), "a member is there twice"),
    ],
)
def test_a_file_that_describes_no_scenario_is_refused_in_a_sentence(
    document: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps(document))
    assert simulate("--events", str(file)) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_the_help_names_every_kind_of_event(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--help") == 0
    shown = capsys.readouterr().out.split("Kinds of events")[1].split("Options:")[0]
    words = shown.replace(",", " ").split()
    assert [kind.value for kind in EventKind if kind.value not in words] == []
