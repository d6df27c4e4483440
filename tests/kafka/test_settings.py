"""The checked-in table of settings is what the released classes of all five releases print today."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.releases import Release
from tests.broker.test_config import KAFKA
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.releases import VERSIONS
from tests.kafka.settings import KafkaSetting, printed, read, render

pytestmark = pytest.mark.kafka


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
    assert {(one.scope, one.name): one for one in settings_of[release]} == KAFKA[release]


def test_a_table_reads_back_as_it_was_printed(settings_of: dict[Release, list[KafkaSetting]]) -> None:
    assert read(render(settings_of)) == {
        release: {(one.scope, one.name): one for one in held} for release, held in settings_of.items()
    }
