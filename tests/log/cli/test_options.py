"""Options of `brokerside log` that change which files are read or written, and what the status says."""

from __future__ import annotations

import shutil
from pathlib import Path

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
