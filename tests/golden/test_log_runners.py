"""The runner of log cases reads from each case what another set of the same cases has otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import zstandard

from broker.clock import ManualClock
from broker.ids import Offset
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.codecs.compression import Codec, compress
from log.record import Record
from tests.golden.log import LOG_RUNNERS, checkpoints, logdir, programs, recovery
from tests.golden.log.cases import Json, run_case, unpack
from tests.golden.log.compressors import kafkas_compressors, zstd_of_size
from tests.golden.log.states import storage_of
from tests.golden.runners import MalformedCaseError
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


def test_files_that_are_deleted_without_delay_are_gone_from_the_listing_of_the_operation(cases: Path) -> None:
    case = load(cases / "log-retention-ms-boundary")
    case["config"]["file.delete.delay.ms"] = 0
    for operation in case["ops"]:
        files = operation["result"].get("files", [])
        files[:] = [name for name in files if not name.endswith(".deleted")]
    case["closedFiles"] = [each for each in case["closedFiles"] if not each["file"].endswith(".deleted")]
    assert programs.run(case, cases / case["case"]) is None


def test_the_last_log_of_the_crashed_partition_is_cut_whatever_its_name(cases: Path) -> None:
    storage = storage_of(cases / "logdir-manager" / "clean-shutdown", ManualClock(TimeMs(0)))
    last = "with.dots_and-dashes-3/00000000000000000034.log"
    size = len(storage.read(last))
    logdir.crash(storage, "with.dots_and-dashes-3")
    assert len(storage.read(last)) == size - logdir.CUT_BYTES


def test_the_crashed_partition_is_the_one_that_was_deleted_in_the_end() -> None:
    listing = ["a-0", "b.c-d-12.<32 hex digits>-delete", "meta.properties"]
    assert str(logdir.crashed_partition({"rootListingAfterAsyncDelete": listing})) == "b.c-d-12"
    with pytest.raises(MalformedCaseError, match="0 partitions were deleted"):
        logdir.crashed_partition({"rootListingAfterAsyncDelete": ["a-0"]})


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


def test_entries_of_an_offset_checkpoint_may_come_in_any_order(cases: Path) -> None:
    case = load(cases / "checkpoint-files")
    case["files"][0]["entries"].reverse()
    case["parse"] = [{"text": "0\n2\nt 0 5\nt 1 6\n", "entries": [["t", 1, 6], ["t", 0, 5]]}]
    assert checkpoints.run(case, cases / case["case"]) is None


def test_a_topic_without_an_id_need_not_say_so(cases: Path) -> None:
    case = load(cases / "log-roll-ms")
    del case["topicId"]
    assert programs.run(case, cases / case["case"]) is None


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


def test_no_frame_is_smaller_than_its_content_can_be() -> None:
    assert zstd_of_size(b"abc", 9) is None
