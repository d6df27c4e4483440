"""`python -m tests golden DIR` says what failed, and never breaks off."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest

from broker.releases import Release
from tests.__main__ import main
from tests.golden.files import run_folder
from tests.golden.log.cases import UnsafeArchiveError, unpack
from tests.golden.sources import COMMIT, config_of
from tests.golden.test_vectors import ARCHIVE

CASE: dict[str, Any] = {
    "name": "three draws",
    "input": {
        "seed": 42,
        "ops": [{"op": "next_int"}, {"op": "next_int_bound", "bound": 10}, {"op": "shuffle", "n": 3}],
    },
    "expected": {"results": [-1170105035, 3, [1, 2, 0]]},
}
STRIPED: dict[str, Any] = {
    "name": "one broker",
    "input": {
        "random_seed": 1,
        "brokers": [{"id": 5, "rack": None, "fenced": False}],
        "calls": [{"start_partition": 0, "partitions": 2, "replication_factor": 1}],
    },
    "expected": {"calls": [{"replicas": [[5], [5]]}], "next_int_after": 1761283695},
}


RELEASED = "Apache Kafka 4.3.1, OpenJDK 17"
BETWEEN: Final = f"Apache Kafka 4.0.0-SNAPSHOT {COMMIT}, OpenJDK 17"
KNOWN = "is not known; it is 'Apache Kafka' and a released version, such as 4.3.1"


def write(
    path: Path, cases: object, algorithm: str = "java_random", version: int = 1, source: object = RELEASED
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    envelope = {"algorithm": algorithm, "schema_version": version, "source": source, "cases": cases}
    path.write_text(json.dumps(envelope), encoding="utf-8")


def changed(case: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {**case, **fields}


def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    status = main(["golden", str(folder)])
    return status, capsys.readouterr().out.splitlines()


def test_files_below_the_folder_are_run_and_others_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "b" / "deep.json", [CASE, CASE])
    write(tmp_path / "a.json", [CASE])
    (tmp_path / "README.md").write_text("not a vector", encoding="utf-8")
    assert run(tmp_path, capsys) == (
        0,
        ["a.json: 1 passed, 0 failed", "b/deep.json: 2 passed, 0 failed", "3 passed, 0 failed"],
    )


def test_a_failed_case_is_named_with_its_first_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a.json", [changed(CASE, expected={"results": [-1170105035, 99, [0, 1, 2]]})])
    status, lines = run(tmp_path, capsys)
    assert status == 1
    assert lines == [
        "a.json: 0 passed, 1 failed",
        "  three draws: results[1]: is 3, expected 99",
        "0 passed, 1 failed",
    ]


NO_BROKER: dict[str, Any] = {
    "name": "no broker",
    "input": {**STRIPED["input"], "brokers": []},
    "expected_error": {
        "class": "org.apache.kafka.common.errors.InvalidReplicationFactorException",
        "message": "All brokers are currently fenced.",
    },
}


@pytest.mark.parametrize(("version", "status"), [("4.2.0", 0), ("4.3.1", 1)])
def test_the_answer_is_that_of_the_release_that_the_source_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, status: int
) -> None:
    write(tmp_path / "s.json", [NO_BROKER], "striped_replica_placer", source=f"Apache Kafka {version}, OpenJDK 17")
    assert run(tmp_path, capsys)[0] == status


SOURCES = ["Apache Kafka 4.9.0, OpenJDK 17", "Apache Kafka 4.0.0-SNAPSHOT " + "0" * 40, "Apache Kafka", "test", "", 431]


@pytest.mark.parametrize("source", [*SOURCES, "4.3.1", None])
def test_a_source_that_is_no_known_release_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: object
) -> None:
    write(tmp_path / "a.json", [CASE], source=source)
    status, lines = run(tmp_path, capsys)
    assert (status, lines[0], lines[2:]) == (1, "a.json: 0 passed, 1 failed", ["0 passed, 1 failed"])
    assert lines[1] == f"  source {source!r} {KNOWN}"


def test_a_source_may_name_the_commit_of_a_released_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a.json", [CASE], source=f"Apache Kafka 4.1.2 {'0' * 40}, OpenJDK 21")
    assert run(tmp_path, capsys)[0] == 0


@pytest.mark.parametrize("source", [*SOURCES, "4.9.0", "4.4.0-SNAPSHOT", "4.3.1", RELEASED])
def test_a_log_case_names_a_version_or_what_other_files_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: object
) -> None:
    (tmp_path / "case-1").mkdir()
    case = {"kind": "checkpoints", "files": [], "parse": [], "source": source}
    (tmp_path / "case-1" / "case.json").write_text(json.dumps(case), encoding="utf-8")
    status, lines = run(tmp_path, capsys)
    if source in ("4.3.1", RELEASED):
        assert (status, lines) == (0, ["case-1: 1 passed, 0 failed", "1 passed, 0 failed"])
        return
    assert (status, lines[0], lines[2:]) == (1, "case-1: 0 passed, 1 failed", ["0 passed, 1 failed"])
    assert lines[1].startswith("  case-1: source ")
    assert lines[1].endswith(KNOWN)


def test_a_folder_without_a_case_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("no vectors here", encoding="utf-8")
    assert main(["golden", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "0 passed, 0 failed\n"
    assert shown.err == f"{tmp_path}: no golden vectors found\n"


def test_an_archive_without_a_case_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a.json", [CASE])
    with tarfile.open(tmp_path / "empty.tar.xz", "w:xz"):
        pass
    assert run(tmp_path, capsys) == (
        1,
        [
            "a.json: 1 passed, 0 failed",
            "empty.tar.xz: 0 passed, 1 failed",
            "  has no cases",
            "1 passed, 1 failed",
        ],
    )


@pytest.mark.parametrize(
    ("case", "difference"),
    [
        ("not an object", "case 0: malformed case: str instead of an object"),
        ({"name": "empty"}, "empty: malformed case: a case has exactly one of `expected` and `expected_error`"),
        (changed(CASE, input={}), "three draws: malformed case: KeyError: 'seed'"),
        (changed(CASE, input={"seed": "x", "ops": []}), "three draws: malformed case: TypeError"),
        (
            changed(CASE, input={"seed": 1, "ops": [{"op": "jump"}]}),
            "three draws: malformed case: unknown operation 'jump'",
        ),
        (
            changed(CASE, input={"seed": 1, "ops": [{"op": "shuffle", "n": 10**12}]}),
            "three draws: malformed case: shuffles 1000000000000 items; at most 1000000 are run",
        ),
        (
            changed(CASE, input={"seed": 2**64, "ops": []}),
            "three draws: refused: seed is 18446744073709551616; allowed",
        ),
        (changed(CASE, expected=None), "three draws: malformed case: `expected` is not an object"),
        (
            changed(CASE, name="\ud800\x1b", expected={"results": []}),
            "\\ud800\\x1b: results: has 3 entries, expected 0",
        ),
    ],
)
def test_a_damaged_case_fails_without_ending_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: object, difference: str
) -> None:
    write(tmp_path / "a.json", [case, changed(CASE, input={"seed": 1, "ops": []}, expected={"results": []})])
    status, lines = run(tmp_path, capsys)
    assert status == 1
    assert lines[0] == "a.json: 1 passed, 1 failed"
    assert lines[1].startswith(f"  {difference}"), lines[1]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "unreadable: Expecting property name"),
        ("[" * 100_000, "unreadable: "),
        ("[]", "not golden vectors: "),
        ('{"algorithm": "java_random", "schema_version": 2, "cases": [{}]}', "schema_version is 2; 1 is known"),
        (
            '{"algorithm": "guess", "schema_version": 1, "cases": [{}]}',
            "unknown algorithm 'guess'; known are admin_utils",
        ),
        ('{"algorithm": ["a"], "schema_version": 1, "cases": [{}]}', "unknown algorithm ['a']"),
        ('{"algorithm": "java_random", "schema_version": 1, "cases": []}', "has no cases"),
    ],
)
def test_a_file_that_cannot_be_run_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, problem: str
) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    status, lines = run(tmp_path, capsys)
    assert status == 1
    assert lines[0] == "a.json: 0 passed, 1 failed"
    assert lines[1].startswith(f"  {problem}"), lines[1]
    assert lines[-1] == "0 passed, 1 failed"


@pytest.mark.parametrize(
    ("content", "difference"),
    [
        ("{", "unreadable: Expecting property name"),
        ("[]", "unknown kind None; known are batches, bitflips"),
        ('{"kind": "guess"}', "unknown kind 'guess'; known are batches, bitflips"),
        ('{"kind": "segment"}', "malformed case: KeyError: "),
    ],
)
def test_a_log_case_that_cannot_be_run_fails_and_the_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, difference: str
) -> None:
    write(tmp_path / "a.json", [CASE])
    (tmp_path / "visible" / "case-1").mkdir(parents=True)
    (tmp_path / "visible" / "case-1" / "case.json").write_text(content, encoding="utf-8")
    status, lines = run(tmp_path, capsys)
    assert status == 1
    assert lines[:2] == ["a.json: 1 passed, 0 failed", "visible/case-1: 0 passed, 1 failed"]
    assert lines[2].startswith(f"  case-1: {difference}"), lines[2]
    assert lines[3] == "1 passed, 1 failed"


@pytest.mark.parametrize(
    "arguments", [[], ["golden"], ["golden", "a", "b"], ["silver", "."], ["golden", "/no/such/place"]]
)
def test_a_command_that_is_not_understood_ends_with_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "usage: python -m tests golden DIR" in capsys.readouterr().err


def archived(path: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w:xz") as archive:
        for member in members:
            archive.addfile(member)


@pytest.mark.parametrize("name", ["../outside", "in/../../outside", "{folder}/outside"])
def test_an_archive_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    archived(tmp_path / "bad.tar.xz", tarfile.TarInfo(name.format(folder=tmp_path)))
    (tmp_path / "inside").mkdir()
    with pytest.raises(UnsafeArchiveError, match="outside' leads out of its folder"):
        unpack(tmp_path / "bad.tar.xz", tmp_path / "inside")
    assert not (tmp_path / "outside").exists()


def test_an_archive_with_a_link_is_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    archived(tmp_path / "bad.tar.xz", link)
    with pytest.raises(UnsafeArchiveError, match="link is neither a file nor a folder"):
        unpack(tmp_path / "bad.tar.xz", tmp_path)


def test_a_damaged_archive_is_a_failure_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "cut.tar.xz").write_bytes(ARCHIVE.read_bytes()[:1000])
    results = list(run_folder(tmp_path))
    assert [(result.name, result.failed_count) for result in results] == [("cut.tar.xz", 1)]
    assert results[0].problem is not None
    assert results[0].problem.startswith("cannot be unpacked: ")


def test_cases_in_an_archive_are_named_by_their_path_in_it(tmp_path: Path) -> None:
    (tmp_path / "set.tar.xz").write_bytes(b"")
    with tarfile.open(tmp_path / "set.tar.xz", "w:xz") as archive:
        archive.add(Path(__file__), arcname="visible/odd/case.json")
    (result,) = run_folder(tmp_path)
    assert (result.name, result.passed_count, result.failures[0].case) == ("set.tar.xz/visible/odd", 0, "odd")


@pytest.mark.parametrize(
    ("case", "release", "indexes_whole_appends"),
    [
        ({}, "3.9", True),
        ({"case": "compact-basic"}, "4.0", True),
        ({"case": "compact-v1-none"}, "3.9", True),
        ({"source": BETWEEN, "case": "compact-basic"}, "4.0", True),
        ({"source": "4.0.0", "case": "log-roll"}, "4.0", True),
        ({"source": "4.0.1", "case": "log-roll"}, "4.0", False),
        ({"source": "Apache Kafka 4.3.1, OpenJDK 17", "case": "compact-v1-none"}, "4.3", False),
    ],
)
def test_a_log_is_that_of_the_kafka_that_the_case_names(
    case: dict[str, Any], release: str, indexes_whole_appends: bool
) -> None:
    config = config_of({"config": {}, **case})
    assert config.release == Release(release)
    assert config.indexes_whole_appends is indexes_whole_appends
