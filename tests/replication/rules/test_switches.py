"""The switches, the releases, and what is refused."""

from __future__ import annotations

import itertools

import pytest

from broker.errors import UsageError
from broker.releases import KNOWN, NEWEST
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, NEVER, RELEASES, SWITCHES, Truncation, rules_of, without


def test_current_rules_have_everything_that_a_release_has() -> None:
    assert all(getattr(CURRENT, name) is (switch.since != NEVER) for name, switch in SWITCHES.items())
    assert CURRENT.truncation is Truncation.ON_FETCH


def test_current_rules_are_those_of_the_newest_release() -> None:
    assert rules_of(NEWEST) == RELEASES["4.4"].rules == rules_of("4.3.1") == CURRENT == rules_of("current")
    assert list(RELEASES) == list(KNOWN)


def test_rules_only_ever_come_and_never_go() -> None:
    releases = [release.rules for release in RELEASES.values()] + [CURRENT]
    for earlier, later in itertools.pairwise(releases):
        assert all(getattr(later, name) or not getattr(earlier, name) for name in SWITCHES)


def test_the_oldest_release_has_one_rule_only() -> None:
    assert [name for name in SWITCHES if getattr(rules_of("0.10.2"), name)] == ["isr_write_epoch_check"]


@pytest.mark.parametrize(
    ("release", "mode"),
    [
        ("0.10.2", Truncation.TO_HIGH_WATERMARK),
        ("0.11", Truncation.BY_LEADER_EPOCH),
        ("1.1", Truncation.BY_LEADER_EPOCH),
        ("2.0", Truncation.BY_COMMON_EPOCH),
        ("2.7", Truncation.BY_COMMON_EPOCH),
        ("2.8", Truncation.ON_FETCH),
        ("4.1", Truncation.ON_FETCH),
    ],
)
def test_how_each_release_truncates(release: str, mode: Truncation) -> None:
    assert rules_of(release).truncation is mode


@pytest.mark.parametrize("name", [name for name, switch in SWITCHES.items() if switch.since in RELEASES])
def test_a_rule_begins_with_its_release(name: str) -> None:
    names = list(RELEASES)
    since = names.index(SWITCHES[name].since)
    assert getattr(RELEASES[names[since]].rules, name)
    assert since == 0 or not getattr(RELEASES[names[since - 1]].rules, name)


def test_two_defaults_of_settings_changed_over_time() -> None:
    assert (RELEASES["2.4"].lag_ms_max, RELEASES["2.5"].lag_ms_max) == (10_000, 30_000)
    assert (RELEASES["0.10.2"].unclean_election, RELEASES["0.11"].unclean_election) == (True, False)


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        rules_of("0.9")
    assert str(caught.value) == "release '0.9' of Kafka is not known; allowed are 0.10.2 to 4.4"


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        without(CURRENT, "gravity")
    assert str(caught.value) == f"rule 'gravity' is not known; allowed are {', '.join(SWITCHES)}"


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^min\.insync\.replicas is 0; allowed are 1 and more$"):
        PartitionSettings(min_isr=0)
    with pytest.raises(UsageError, match=r"^replica\.lag\.time\.max\.ms is -1; allowed are 0 and more$"):
        PartitionSettings(lag_ms_max=-1)  # type: ignore[arg-type] # - what a caller without mypy may pass.
