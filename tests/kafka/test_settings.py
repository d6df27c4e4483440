"""The table of settings is what the released classes of all releases print, and settings of groups are taken alike."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from broker.config import INT_MAX, Scope, Setting, Settings, ValueType, catalog
from broker.config.catalog import parse_rows, rows
from broker.errors import UsageError
from broker.releases import Release
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.releases import OLDEST, VERSIONS
from tests.kafka.settings import KafkaSetting, printed, printed_settings, render

pytestmark = pytest.mark.kafka

CASE_COUNT = 4000
KINDS = ("consumer", "share", "streams")
DURATIONS = ("by_duration:P1DT6H", "by_duration:PT-1H", "by_duration:-PT-1H", "by_duration:PT", "by_duration", "none")


@pytest.fixture(scope="session")
def settings_of(kafka_build: Path) -> dict[Release, list[KafkaSetting]]:
    """What the classes of each release print."""
    try:
        return {release: printed(kafka_build, release) for release in VERSIONS}
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's own classes cannot be run here: {missing}")


@pytest.mark.parametrize("release", VERSIONS, ids=str)
def test_every_setting_of_the_table_is_what_the_release_prints(
    settings_of: dict[Release, list[KafkaSetting]], release: Release
) -> None:
    assert {(one.scope, one.name): one for one in settings_of[release]} == printed_settings(rows())[release]


def test_printing_the_table_again_changes_nothing(settings_of: dict[Release, list[KafkaSetting]]) -> None:
    assert parse_rows(render(settings_of, rows())) == rows()


@pytest.mark.parametrize("kafka", [each for each in VERSIONS if each >= OLDEST], indirect=True, ids=str)
def test_random_settings_of_groups_are_taken_and_refused_as_kafka_does(kafka: KafkaJvm) -> None:
    release = kafka.release
    chance = random.Random(f"group settings {release}")
    cases = [drawn(chance, release) for _ in range(CASE_COUNT)]
    theirs = [line.split("\t", 1) for line in kafka.call("group_settings", cases=cases)]
    assert len(theirs) == CASE_COUNT
    for (broker, group), (refused, message) in zip(cases, theirs, strict=True):
        assert answered(broker, group, release) == refused, (broker, group, message)
    assert min(sum(refused == each for refused, _ in theirs) for each in ("", "group", "broker")) > CASE_COUNT // 20


def answered(broker: dict[str, str], group: dict[str, str], release: Release) -> str:
    """Return which of the two we refuse: "broker", "group" or neither."""
    try:
        effective = Settings.parse(Scope.BROKER, broker, release=release)
    except UsageError:
        return "broker"
    try:
        Settings.parse(Scope.GROUP, group, broker=effective)
    except UsageError:
        return "group"
    return ""


def drawn(chance: random.Random, release: Release) -> tuple[dict[str, str], dict[str, str]]:
    """Return settings of a broker and of a group, most of them near the defaults and bounds of that release."""
    settings = [each for each in catalog(release) if not each.internal]
    brokers = [each for each in settings if each.name.startswith(tuple(f"group.{kind}." for kind in KINDS))]
    brokers = [each for each in brokers if each.type is ValueType.INT]
    # Kafka 4.4 asks its registry of task assignors, which is no setting's own rule; streams groups are not modelled.
    groups = [each for each in settings if each.scope is Scope.GROUP and each.name != "streams.assignor.name"]
    of_broker = chance.sample(brokers, chance.choice((0, 0, 1, 1, 2, 3)))
    of_group = chance.sample(groups, chance.choice((0, 1, 1, 2, 3)))
    return _values(chance, of_broker), _values(chance, of_group)


def _values(chance: random.Random, settings: list[Setting]) -> dict[str, str]:
    return {setting.name: _value(chance, setting) for setting in settings}


def _value(chance: random.Random, setting: Setting) -> str:
    if setting.type is ValueType.BOOLEAN:
        return chance.choice(("true", "false", "yes"))
    if setting.type is ValueType.STRING:
        return chance.choice((*setting.allowed, *DURATIONS))
    if setting.type is ValueType.LIST:
        return chance.choice(("", "zone", "zone,rack"))
    assert isinstance(setting.default, int)
    near = (setting.default, setting.minimum or 0, setting.maximum or 60_000, 5000, 15_000, 45_000, 60_000, 0, 2, 10)
    return str(min(INT_MAX, chance.choice(near) + chance.choice((-1, 0, 0, 0, 1))))
