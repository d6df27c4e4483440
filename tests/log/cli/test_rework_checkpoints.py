"""The checkpoints of a log directory, which tell `recover` and `compact` how far each of its logs is sound."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from broker.ids import Offset, TopicPartition
from log.storage import Storage
from log.storage.checkpoints import LOG_START_FILE, RECOVERY_POINT_FILE, read_offset_checkpoint
from log.tools import rework
from tests.log.cli.test_commands import answer
from tests.log.samples import DIRECTORY, write_sample

COUNT = 3


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Write a log directory of three partitions that have equal files."""
    folder = tmp_path / "logs"
    write_sample("none", folder)
    for number in range(1, COUNT):
        shutil.copytree(folder / DIRECTORY, folder / f"topic-{number}")
    return folder


def test_a_checkpoint_is_read_once_for_all_partitions_of_its_directory(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noted(storage: Storage, path: str) -> dict[TopicPartition, Offset]:
        read.append(path)
        return read_offset_checkpoint(storage, path)

    monkeypatch.setattr(rework, "read_offset_checkpoint", noted)
    assert answer("recover", logs, "--in-place", "--yes", "--jobs", "1").status == 0
    assert read == [RECOVERY_POINT_FILE, LOG_START_FILE]


def test_each_partition_is_recovered_from_the_point_of_its_own_line(logs: Path) -> None:
    (logs / RECOVERY_POINT_FILE).write_text("0\n2\ntopic 0 180\ntopic 2 170\n")
    found = answer("recover", logs, "--in-place", "--yes", "--jobs", "1")
    said = [line.strip() for line in found.lines if "recovery point" in line]
    assert (found.status, said) == (
        0,
        [f"what is below the recovery point, {point}, was taken as it is" for point in (180, 170)],
    )


def test_a_damaged_checkpoint_is_said_of_each_partition_that_waits_for_it(logs: Path, tmp_path: Path) -> None:
    (logs / RECOVERY_POINT_FILE).write_text("0\n2\ntopic 0 180\n")
    found = answer("recover", logs, "--out", tmp_path / "out", "--jobs", "1")
    damage = "recovery-point-offset-checkpoint: 2 entries announced, 1 found"
    assert (found.status, found.err.splitlines()) == (1, [damage] * COUNT)
    assert list((tmp_path / "out").iterdir()) == []
