"""The runner of log cases reads from each case what another set of the same cases has otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import zstandard

from broker.ids import Offset
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.codecs.compression import Codec, compress
from log.record import Record
from tests.golden.log import LOG_RUNNERS, recovery
from tests.golden.log.cases import Json, run_case, unpack
from tests.golden.log.compressors import kafkas_compressors, zstd_of_size
from tests.golden.test_vectors import ARCHIVE

RECORDS = tuple(Record(Offset(at), TimeMs(1_700_000_000_000), b"key", b"value value " * at) for at in range(9))
ZSTD = BatchSpec(codec=Codec.ZSTD)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    unpack(ARCHIVE, folder)
    return folder / "cases"


def load(folder: Path) -> Json:
    return json.loads((folder / "case.json").read_text())


def test_the_recovery_point_is_the_one_that_the_scenario_names(cases: Path) -> None:
    case = load(cases / "recover-torn-tail-none")
    (scenario,) = (each for each in case["scenarios"] if "middle of the first segment" in each["scenario"])
    scenario["scenario"] = scenario["scenario"].replace("(1)", "(5)")
    scenario["state"]["recoveryPoint"] = 5
    assert recovery.run({**case, "cuts": [], "flips": [], "scenarios": [scenario]}, cases / case["case"]) is None


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("batch-v0-none", "topic-0/00000000000000000000.log"),
        ("checkpoint-files", "partition.metadata"),
        ("recover-torn-tail-none", "topic-0"),
    ],
)
def test_a_missing_file_that_the_case_names_is_a_failure(cases: Path, tmp_path: Path, name: str, file: str) -> None:
    shutil.copytree(cases / name, tmp_path / name)
    shutil.move(tmp_path / name / file, tmp_path / "gone")
    assert run_case(tmp_path / name, LOG_RUNNERS) == f"malformed case: the folder has no {file}"


def test_what_stands_compressed_in_a_file_of_the_case_is_compressed_to_its_bytes(tmp_path: Path) -> None:
    kafkas = build_batch(BatchSpec(codec=Codec.ZSTD, compression_level=19), RECORDS)
    assert kafkas != build_batch(ZSTD, RECORDS)
    (tmp_path / "00000000000000000000.log.deleted").write_bytes(kafkas)
    with kafkas_compressors(tmp_path):
        assert build_batch(ZSTD, RECORDS) == kafkas
        assert build_batch(ZSTD, RECORDS[:3]) != kafkas


@pytest.mark.parametrize("more_bytes", range(9))
def test_a_frame_is_brought_to_a_size_with_the_same_content(tmp_path: Path, more_bytes: int) -> None:
    data = b"".join(record.value or b"" for record in RECORDS)
    size = len(compress(Codec.ZSTD, data)) + more_bytes
    frame = zstd_of_size(data, size)
    assert frame is not None
    assert len(frame) == size
    assert zstandard.ZstdDecompressor().decompressobj().decompress(frame) == data
    with kafkas_compressors(tmp_path) as compressor:
        compressor.size_bytes = len(build_batch(ZSTD, RECORDS)) + more_bytes
        assert len(build_batch(ZSTD, RECORDS)) == compressor.size_bytes
