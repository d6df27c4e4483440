"""Options of `brokerside log` that change which files are read or written, and what the status says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from broker.cli import EXIT_REFUSED, EXIT_USAGE
from tests.log.cli.test_commands import answer, contents
from tests.log.samples import DIRECTORY, write_sample


def log_directory(folder: Path) -> Path:
    write_sample("none", folder)
    return folder


def test_stats_that_cannot_estimate_a_compaction_have_status_1(tmp_path: Path) -> None:
    partition = log_directory(tmp_path) / DIRECTORY
    (partition / "00000000000000000000.txnindex").write_bytes(b"\x7f" * 34)  # Of a version that there is not.
    found = answer("stats", partition, "--total-only")
    assert found.err.startswith(f"what compaction would save in {partition}: ")
    assert found.status == EXIT_REFUSED
    assert answer("stats", partition, "--total-only", "--no-compaction").status == 0


def test_a_copy_never_goes_into_what_is_read_however_its_path_is_spelled(tmp_path: Path) -> None:
    partition = log_directory(tmp_path) / DIRECTORY
    before = contents(tmp_path)
    out = tmp_path / "elsewhere" / ".." / DIRECTORY / "out"
    found = answer("recover", partition, "--out", out)
    assert found.err == f"brokerside log: --out {out} lies in {partition}, which is only read\n"
    assert (found.status, contents(tmp_path)) == (EXIT_USAGE, before)


def test_only_the_topics_that_are_named_are_reworked(tmp_path: Path) -> None:
    logs = log_directory(tmp_path / "logs")
    shutil.copytree(logs / DIRECTORY, logs / "other-7")
    assert answer("recover", logs, "--topic", "topic", "--out", tmp_path / "out").status == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == [DIRECTORY]


@pytest.mark.parametrize(("release", "entry_count"), [("3.8", 0), ("3.9", 2), ("4.3", 2)])
def test_a_log_is_compacted_as_by_the_release_that_is_named(tmp_path: Path, release: str, entry_count: int) -> None:
    # What the cleaner writes in one append gets an entry a batch from 3.9.1 on, before that one.
    partition = log_directory(tmp_path / "logs") / DIRECTORY
    settings = ("--config", "index.interval.bytes=0", "--config", "cleanup.policy=compact", "--now-ms", 5)
    out = tmp_path / "out"
    found = answer("compact", partition, "--out", out, "--include-active", "--kafka", release, *settings)
    assert found.status == 0
    assert (out / DIRECTORY / "00000000000000000000.index").stat().st_size == entry_count * 8


def test_a_release_that_is_not_known_is_refused(tmp_path: Path) -> None:
    found = answer("recover", log_directory(tmp_path) / DIRECTORY, "--out", tmp_path / "out", "--kafka", "9.9")
    assert (found.status, (tmp_path / "out").exists()) == (EXIT_USAGE, False)
    assert "9.9" in found.err
