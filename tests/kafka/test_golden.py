"""The checked-in golden vectors are what released Kafka prints, and new ones of older releases pass as they do.

Left out: machines whose zlib is another than the one of the checked-in files may compress gzip batches otherwise.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Final

import pytest

from broker.releases import NEWEST, Release
from tests.golden.files import run_folder
from tests.kafka.golden.__main__ import main
from tests.kafka.golden.random_logs import random_log_cases
from tests.kafka.golden.writing import (
    ARCHIVE,
    CLASSIC,
    GIVEN,
    GIVEN_ARCHIVE,
    ROWS_SHOWN_MAX,
    algorithms,
    archived,
    case_text,
    cases_by_name,
    digested,
    envelope,
    given_cases,
    write_logs,
    write_placement,
)
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError
from tests.kafka.releases import WITH_ADMIN_UTILS

SEEDS: Final = {"4.0": 20_251_124, "4.4": 20_251_125}
"""By release: the seed of the new cases."""
PRINTED: Final = Release("4.3")
"""The release that printed the checked-in files; the newest answers alike."""
GIVEN_COUNT: Final = 1556
NEW_COUNT_MIN: Final = 750


def written(kafka_build: Path, release: Release, out: Path, seed: int | None) -> Path:
    """Return the folder that is written, or skip the test."""
    try:
        write_placement(kafka_build, release, out / "placement", seed=seed)
        write_logs(kafka_build, release, out, seed=seed)
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's own classes cannot be run here: {missing}")
    return out


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive, "r:xz") as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}


@pytest.mark.kafka
def test_the_checked_in_vectors_are_what_their_release_prints(kafka_build: Path, tmp_path: Path) -> None:
    out = written(kafka_build, PRINTED, tmp_path / "out", None)
    for path in sorted(GIVEN.glob("*.json")):
        assert (out / "placement" / path.name).read_bytes() == path.read_bytes(), path.name
    theirs, checked_in = members(out / ARCHIVE), members(GIVEN_ARCHIVE)
    assert theirs.keys() == checked_in.keys()
    assert [name for name, content in theirs.items() if content != checked_in[name]] == []


@pytest.mark.kafka
@pytest.mark.parametrize("release", sorted(SEEDS))
def test_new_cases_of_an_older_release_pass(kafka_build: Path, tmp_path: Path, release: str) -> None:
    out = written(kafka_build, Release(release), tmp_path / "out", SEEDS[release])
    results = list(run_folder(out))
    assert [(result.name, failure) for result in results for failure in result.failures] == []
    assert [result.problem for result in results if result.problem] == []
    assert sum(result.passed_count for result in results) >= GIVEN_COUNT + NEW_COUNT_MIN


@pytest.mark.kafka
@pytest.mark.parametrize("kafka", [NEWEST], indirect=True, ids=str)
def test_what_kafka_throws_is_an_answer_with_class_and_message(kafka: KafkaJvm) -> None:
    refusal = kafka.ask("producer_key_partition", {"key_hex": "00", "partitions": 0})
    assert refusal == {"expected_error": {"class": "java.lang.ArithmeticException", "message": "/ by zero"}}


def test_every_checked_in_file_names_a_released_kafka() -> None:
    sources = {name: json.loads((GIVEN / f"{name}.json").read_text("utf-8"))["source"] for name in algorithms()}
    assert sources.pop(CLASSIC) == "Apache Kafka 4.0.1, OpenJDK 17"
    assert set(sources.values()) == {"Apache Kafka 4.3.1, OpenJDK 17"}
    cases = [json.loads(content) for name, content in members(GIVEN_ARCHIVE).items() if name.endswith("case.json")]
    assert {case["source"] for case in cases} == {"Apache Kafka 4.3.1, OpenJDK 17"}
    assert Release("4.0.1") == WITH_ADMIN_UTILS


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    for order in (("a", "b"), ("b", "a")):
        for name in order:
            path = tmp_path / order[0] / "case" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
    (tmp_path / "a" / "case" / "a").chmod(0o600)
    assert archived(tmp_path / "a") == archived(tmp_path / "b")
    (tmp_path / "a" / "case" / "a").write_text("c")
    assert archived(tmp_path / "a") != archived(tmp_path / "b")


def test_texts_have_a_case_or_an_operation_a_line_and_read_back() -> None:
    cases = [{"name": "é\ud800", "input": {}, "expected": {}}, {"name": "b", "input": {}, "expected": {}}]
    text = envelope("java_random", "Apache Kafka 4.3.1, OpenJDK 17", cases)
    assert text.isascii()
    assert len(text.splitlines()) == 2 + len(cases)
    assert json.loads(text)["cases"] == cases
    case = {"case": "a", "ops": [{"op": "roll"}, {"op": "flush"}], "names": ["x", "y"], "ratio": 0.1, "none": []}
    assert json.loads(case_text(case)) == case
    assert '{"op":"roll"},\n{"op":"flush"}\n' in case_text(case)


def test_a_digest_stands_for_a_large_matrix_alone() -> None:
    rows = [[number % 7] for number in range(ROWS_SHOWN_MAX + 1)]
    shown = {"replicas": rows[:-1], "first_partition": 3}
    assert digested(shown, 3) == shown
    digest = digested({"replicas": rows, "first_partition": 3}, 3)
    assert digest["count"] == len(rows)
    assert digest["head"] == rows[:5]
    assert digest["tail"] == rows[-5:]
    assert digest["sha256"] != digested({"replicas": rows}, 0)["sha256"]


def test_the_inputs_are_those_of_the_checked_in_cases() -> None:
    cases = json.loads((GIVEN / "java_random.json").read_text("utf-8"))["cases"]
    assert given_cases("java_random") == [{"name": case["name"], "input": case["input"]} for case in cases]


def test_new_log_cases_are_a_function_of_the_seed() -> None:
    with_cases = cases_by_name(GIVEN_ARCHIVE)
    drawn = [json.dumps(list(random_log_cases(seed, with_cases))) for seed in (5, 5, 6)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    names = [case["case"] for _, case in random_log_cases(5, with_cases)]
    assert len(set(names)) == len(names)
    kinds = {case["kind"] for _, case in random_log_cases(5, with_cases)}
    assert kinds == {"batches", "bitflips", "checkpoints", "log", "logdir", "recovery", "segment", "truncate"}


@pytest.mark.parametrize("release", ["4.9", "3.8", "newest"])
def test_a_release_that_cannot_be_asked_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], release: str
) -> None:
    assert main([str(tmp_path / "out"), "--kafka", release]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "allowed are" in shown.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main([str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"{tmp_path} is there and is no empty folder; give one that can be made\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_without_java_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "Kafka's own classes cannot be run here: java is not on the PATH\n"
    assert not (tmp_path / "out").exists()
