"""One Java process for the run, or one clear reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.golden.log.cases import unpacked
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.log_jvm import KafkaLogs

GOLDEN_LOGS: Final = Path(__file__).parents[1] / "golden" / "log.tar.xz"


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaJvm]:
    """Kafka's own classes; tests that ask for them are skipped where they cannot be had."""
    try:
        running = KafkaJvm.start(tmp_path_factory.mktemp("kafka"))
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's own classes cannot be run here: {missing}")
    with running:
        yield running


@pytest.fixture(scope="session")
def kafka_logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaLogs]:
    """Kafka's own log classes; tests that ask for them are skipped where they cannot be had."""
    try:
        running = KafkaLogs.start(tmp_path_factory.mktemp("kafka-logs"))
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's own classes cannot be run here: {missing}")
    with running:
        yield running


@pytest.fixture(scope="session")
def golden_logs() -> Iterator[Path]:
    """The golden cases of log storage, unpacked for the run."""
    with unpacked(GOLDEN_LOGS) as folder:
        yield folder
