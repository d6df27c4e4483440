"""Groups before the coordinator: herd effect and split brain, counted, and `brokerside groups herd`."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cli import run
from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.group.cli import ROWS, herd_command
from broker.group.herd import Herd, HerdOptions, herd_episodes, range_of


def herd(*arguments: str) -> int:
    return run(herd_command, "brokerside groups herd", list(arguments))


def test_one_change_wakes_every_consumer_and_the_reads_grow_with_the_square() -> None:
    once, twice = (
        herd_episodes(HerdOptions(consumer_count=count, partition_count=3 * count), SplitMix64(0)) for count in (20, 40)
    )
    assert [each.woken_count for each in once[1:]] == [20, 20]
    assert once[2].settled_ms >= 6_000
    assert once[2].unowned_partition_ms >= 3 * 6_000  # Its three partitions, until ZooKeeper has noticed.
    assert (once[0].read_count, twice[0].read_count) == (10_189, 76_784)
    assert [round(after.read_count / before.read_count, 1) for before, after in zip(once, twice, strict=True)] == [
        7.5, 3.6, 4.1
    ]  # fmt: skip


def test_consumers_that_have_read_different_groups_claim_what_others_have_not_released() -> None:
    group = Herd(HerdOptions(notice_ms=500, retry_count_max=100), SplitMix64(1))
    group.start()
    assert group.settle("20 start").ownerless_count == 0
    group.join("c0003x")
    joined = group.settle("one more joins")
    assert min(joined.disagreement_count, joined.conflict_count) > 0
    assert joined.unowned_partition_ms > 60 * 500


def test_a_consumer_that_may_try_once_fails_at_its_first_conflict_and_the_group_still_ends() -> None:
    started, *_ = herd_episodes(HerdOptions(consumer_count=30, notice_ms=500, retry_count_max=1), SplitMix64(3))
    assert started.failed_consumer_count == started.conflict_count > 0
    assert started.ownerless_count > 0
    assert len(herd_episodes(HerdOptions(consumer_count=1, partition_count=1, retry_count_max=1), SplitMix64(1))) == 3


def test_a_consumer_that_dies_as_it_begins_claims_nothing() -> None:
    group = Herd(HerdOptions(consumer_count=2, partition_count=4), SplitMix64(1))
    group.start()
    group.settle("2 start")
    group.join("x")
    group.crash("x")
    group.settle("x is gone")
    assert [group.owners()[partition] for partition in range(4)] == ["c0000", "c0000", "c0001", "c0001"]


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32))
def test_no_partition_ever_has_two_owners(consumer_count: int, partition_count: int, seed: int) -> None:
    group = Herd(HerdOptions(consumer_count=consumer_count, partition_count=partition_count), SplitMix64(seed))
    group.start()
    group.settle("start")
    held = [partition for consumer in group.consumers.values() for partition in consumer.owned]
    assert len(held) == len(set(held))
    ranges = [range_of(place, consumer_count, partition_count) for place in range(consumer_count)]
    assert [partition for start, end in ranges for partition in range(start, end)] == list(range(partition_count))


def test_the_command_prints_a_column_for_each_change_or_json_whose_keys_its_help_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert herd() == 0
    table = capsys.readouterr().out
    assert "20 consumers, 60 partitions, no coordinator, seed 0" in table
    assert re.search(r"20 start +┃ +one more joins ┃ +one dies", table)
    assert re.search(r"consumers woken +│ +\d+ │ +20 │ +20 │", table)
    assert herd("--consumers", "6", "--partitions", "7", "--seed", "3", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["version"], document["seed"], document["options"]["partition_count"]) == (1, 3, 7)
    assert (document["episodes"][2]["what"], document["episodes"][2]["woken_count"]) == ("one dies", 6)
    assert herd("--help") == 0
    rows = dict(re.findall(r"^ +(\S.*) \((\w+)\):$", capsys.readouterr().out, re.MULTILINE))
    assert rows == ROWS
    assert set(rows.values()) == set(document["episodes"][0]) - {"what"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--consumers", "0"), "Invalid value for '--consumers': 0 is not in the range 1<=x<=200."),
        (("--partitions", "many"), "Invalid value for '--partitions': 'many' is not a valid integer range."),
    ],
)
def test_sizes_that_cannot_be_run_are_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert herd(*arguments) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"^consumer_count is 0; at least 1 is allowed$"):
        HerdOptions(consumer_count=0)
