"""Java processes with Kafka's own classes, a release each, or one clear reason why there are none.

A test that asks for `kafka` runs once for each release of `DEFAULTS`, or of the constant RELEASES of its module; the
process says as `.release` which one answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.golden.log.cases import unpacked
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.releases import DEFAULTS

GOLDEN_LOGS: Final = Path(__file__).parents[1] / "golden" / "log.tar.xz"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for Kafka's classes on each of its releases, unless it says itself on which."""
    named = [marker.args[0] for marker in metafunc.definition.iter_markers("parametrize")]
    chosen = {name for names in named for name in (names.split(",") if isinstance(names, str) else names)}
    if "kafka" in metafunc.fixturenames and "kafka" not in chosen:
        releases = getattr(metafunc.module, "RELEASES", DEFAULTS)
        metafunc.parametrize("kafka", releases, indirect=True, ids=str, scope="session")


@pytest.fixture(scope="session")
def kafka_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory where the Java sources are compiled, once for each release."""
    return tmp_path_factory.mktemp("kafka")


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest, kafka_build: Path) -> Iterator[KafkaJvm]:
    """Kafka's own classes; tests that ask for them are skipped where they cannot be had."""
    try:
        running = KafkaJvm.start(kafka_build, request.param)
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's own classes cannot be run here: {missing}")
    with running:
        yield running


@pytest.fixture(scope="session")
def golden_logs() -> Iterator[Path]:
    """The golden cases of log storage, unpacked for the run."""
    with unpacked(GOLDEN_LOGS) as folder:
        yield folder
