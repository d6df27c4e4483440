"""Every golden vector of this folder, one test a case: what Kafka's own classes printed is what we answer."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.golden.files import GoldenFile, case_name, golden_paths, load, run_case
from tests.golden.log import LOG_RUNNERS
from tests.golden.log.cases import CASE_NAME, case_folders, unpack
from tests.golden.log.cases import run_case as run_log_case
from tests.golden.runners import Json

FOLDER: Final = Path(__file__).parent
FILES: Final[dict[str, GoldenFile]] = {str(path.relative_to(FOLDER)): load(path) for path in golden_paths(FOLDER)}
ARCHIVE: Final = FOLDER / "log.tar.xz"

with tarfile.open(ARCHIVE, "r:xz") as _members:
    LOG_CASES: Final = sorted(Path(name).parent.name for name in _members.getnames() if Path(name).name == CASE_NAME)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("golden")
    unpack(ARCHIVE, folder)
    return {path.name: path for path in case_folders(folder)}


@pytest.mark.parametrize(
    ("file", "case"),
    [
        pytest.param(file, case, id=f"{file}-{case_name(case, index)}")
        for file, golden in FILES.items()
        for index, case in enumerate(golden.cases)
    ],
)
def test_our_answer_is_that_of_kafka(file: str, case: Json) -> None:
    without_hints = {key: value for key, value in case.items() if key != "hints"}
    assert run_case(without_hints, FILES[file].runner) is None


def test_the_folder_holds_all_vectors_of_placement() -> None:
    assert {file: len(golden.cases) for file, golden in FILES.items()} == {
        "placement/admin_utils.json": 148,
        "placement/consumer_cooperative_sticky.json": 172,
        "placement/consumer_range.json": 90,
        "placement/consumer_roundrobin.json": 98,
        "placement/consumer_sticky.json": 172,
        "placement/group_coordinator_partition.json": 147,
        "placement/java_random.json": 60,
        "placement/producer_key_partition.json": 193,
        "placement/server_range.json": 110,
        "placement/server_uniform.json": 110,
        "placement/striped_replica_placer.json": 129,
    }


@pytest.mark.parametrize("case", LOG_CASES)
def test_our_log_does_what_kafkas_did(folders: dict[str, Path], case: str) -> None:
    assert run_log_case(folders[case], LOG_RUNNERS) is None


def test_the_archive_holds_cases_of_every_kind() -> None:
    kinds = Counter(case.partition("-")[0] for case in LOG_CASES)
    assert kinds == {
        "batch": 39,
        "checkpoint": 1,
        "compact": 31,
        "corrupt": 5,
        "log": 32,
        "logdir": 1,
        "recover": 2,
        "segment": 16,
    }
