"""`brokerside groups herd`: what it prints, explains and refuses."""

from __future__ import annotations

import json
import re

import pytest

from broker.cli import run
from broker.entropy import SplitMix64
from broker.group.zookeeper import HerdOptions, herd_episodes
from broker.group.zookeeper.cli import _ROWS, herd_command
from replication.groups.cli import groups


def herd(*arguments: str) -> int:
    return run(herd_command, "brokerside groups herd", list(arguments))


def test_a_column_for_each_episode_shows_the_herd_effect(capsys: pytest.CaptureFixture[str]) -> None:
    assert herd() == 0
    printed = capsys.readouterr().out
    assert "20 consumers, 60 partitions, no coordinator, seed 0" in printed
    (heads,) = [line for line in printed.splitlines() if "one dies" in line]
    assert [head.strip() for head in heads.strip("┃").split("┃")] == [
        "", "20 start", "one more joins", "one dies"
    ]  # fmt: skip
    (woken,) = [line for line in printed.splitlines() if "consumers woken" in line]
    assert woken.split("│")[3:5] == ["             20 ", "       20 "]


def test_json_has_every_count_and_is_the_same_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--consumers", "6", "--partitions", "7", "--seed", "3", "--json")
    assert herd(*arguments) == 0
    first = capsys.readouterr().out
    assert herd(*arguments) == 0
    assert capsys.readouterr().out == first
    document = json.loads(first)
    assert (document["version"], document["seed"]) == (1, 3)
    assert (document["options"]["consumer_count"], document["options"]["partition_count"]) == (6, 7)
    assert [each["what"] for each in document["episodes"]] == ["6 start", "one more joins", "one dies"]
    assert document["episodes"][2]["woken_count"] == 6
    assert herd(*arguments[:-2], "4", "--json") == 0
    assert json.loads(capsys.readouterr().out)["episodes"] != document["episodes"]


def test_the_help_says_what_the_two_troubles_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(groups, "brokerside groups", ["herd", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Herd effect: one change wakes every consumer" in printed
    assert "Split brain: two consumers that have read different members compute ranges that overlap" in printed
    assert "brokerside groups herd --consumers 40 --seed 3 --json" in printed


def test_the_help_names_the_json_key_of_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert herd("--consumers", "3", "--json") == 0
    keys = set(json.loads(capsys.readouterr().out)["episodes"][0]) - {"what"}
    assert herd("--help") == 0
    rows = re.findall(r"^ +(\S.*) \((\w+)\):$", capsys.readouterr().out, re.MULTILINE)
    assert {key for _, key in rows} == keys
    assert [name for name, _ in rows] == list(_ROWS)


def test_twice_the_group_makes_the_reads_that_the_help_names() -> None:
    once, twice = (
        herd_episodes(HerdOptions(consumer_count=count, partition_count=3 * count), SplitMix64(0)) for count in (20, 40)
    )
    reads = [(before.report.read_count, after.report.read_count) for before, after in zip(once, twice, strict=True)]
    assert reads[0] == (10_189, 76_784)
    assert [round(after / before, 1) for before, after in reads] == [7.5, 3.6, 4.1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--consumers", "0"), "Invalid value for '--consumers': 0 is not in the range 1<=x<=200."),
        (("--partitions", "many"), "Invalid value for '--partitions': 'many' is not a valid integer range."),
        (("--brokers", "3"), "No such option '--brokers'"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert herd(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_a_group_that_has_given_up_altogether_still_ends() -> None:
    options = HerdOptions(consumer_count=1, partition_count=1, retry_count_max=1)
    episodes = herd_episodes(options, SplitMix64(1))
    assert [episode.what for episode in episodes] == ["1 start", "one more joins", "one dies"]
