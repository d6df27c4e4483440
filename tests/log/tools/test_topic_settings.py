"""What `log recover` says of settings that the metadata log beside a partition has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.log.cli.test_commands import answer
from tests.log.metadata.made import START_MS, Change, batches, config, topic
from tests.log.samples import DIRECTORY, write_sample

METADATA = "__cluster_metadata-0"


def write_metadata(log_dir: Path, *appends: Change) -> None:
    (log_dir / METADATA).mkdir()
    (log_dir / METADATA / "00000000000000000000.log").write_bytes(batches(*appends))


def warnings(log_dir: Path, out: Path, *settings: str) -> list[str]:
    given = [word for setting in settings for word in ("--config", setting)]
    found = answer("recover", log_dir / DIRECTORY, "--out", out, "--now-ms", START_MS, *given)
    assert found.status == 0
    return [line for line in found.err.splitlines() if "warning" in line]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_sample("none", tmp_path / "logs")
    return tmp_path / "logs"


def test_a_setting_that_changes_indexes_and_was_not_given_is_a_warning(log_dir: Path, tmp_path: Path) -> None:
    settings = [
        config("index.interval.bytes", "100", topic="topic"),
        config("segment.index.bytes", "4096", topic="topic"),
        config("segment.bytes", "1500", topic="topic"),
        config("index.interval.bytes", "7", topic="another"),
    ]
    write_metadata(log_dir, [topic("topic")], settings)
    one, two = warnings(log_dir, tmp_path / "out")
    assert one == (
        f"warning: topic topic has index.interval.bytes=100 in {log_dir}/{METADATA}, and is recovered with 4096;"
        " its indexes will differ from a broker's: give --config index.interval.bytes=100"
    )
    assert "segment.index.bytes=4096" in two
    given = ("index.interval.bytes=100", "segment.index.bytes=4096")
    assert warnings(log_dir, tmp_path / "again", *given) == []


def test_the_default_for_all_brokers_counts_where_the_topic_says_nothing(log_dir: Path, tmp_path: Path) -> None:
    defaults = [config("log.index.interval.bytes", "9"), config("log.index.size.max.bytes", "4096")]
    write_metadata(log_dir, defaults, [config("segment.index.bytes", "10485760", topic="topic")])
    (only,) = warnings(log_dir, tmp_path / "out")
    assert "index.interval.bytes=9 in" in only


def test_without_a_metadata_log_nothing_is_said_and_a_damaged_one_is_one_warning(log_dir: Path, tmp_path: Path) -> None:
    assert warnings(log_dir, tmp_path / "out") == []
    (log_dir / METADATA).mkdir()
    (log_dir / METADATA / "00000000000000000000.log").write_bytes(b"\0" * 100)
    (only,) = warnings(log_dir, tmp_path / "again")
    assert only.startswith("warning: whether topics have settings of their own is not known: ")


def test_a_setting_that_is_no_number_is_passed_over(log_dir: Path, tmp_path: Path) -> None:
    write_metadata(log_dir, [config("index.interval.bytes", "many", topic="topic")])
    assert warnings(log_dir, tmp_path / "out") == []
