"""One Java process for the run, or one clear reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaJvm]:
    """Kafka's own classes; tests that ask for them are skipped where they cannot be had."""
    try:
        running = KafkaJvm.start(tmp_path_factory.mktemp("kafka"))
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's own classes cannot be run here: {missing}")
    with running:
        yield running
