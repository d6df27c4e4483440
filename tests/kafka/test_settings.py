"""The checked-in table of settings is what the released classes of all releases print today."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.config.catalog import parse_rows, rows
from broker.releases import Release
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.releases import VERSIONS
from tests.kafka.settings import KafkaSetting, printed, printed_settings, render

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
    assert {(one.scope, one.name): one for one in settings_of[release]} == printed_settings(rows())[release]


def test_printing_the_table_again_changes_nothing(settings_of: dict[Release, list[KafkaSetting]]) -> None:
    assert parse_rows(render(settings_of, rows())) == rows()
