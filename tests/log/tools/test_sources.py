"""Which files a path names, and what several paths name together."""

from __future__ import annotations

from pathlib import Path

import pytest

from log.segments.file_names import LOG, OFFSET_INDEX
from log.tools.sources import expand, expand_all, named_file
from tests.log.samples import DIRECTORY, write_sample


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write_sample("none", tmp_path / "logs")
    return tmp_path / "logs" / DIRECTORY


def test_a_directory_that_is_named_beside_some_of_its_files_is_read_whole(partition: Path) -> None:
    first = sorted(partition.glob(f"*{LOG}"))[0]
    for paths in ([first, partition], [partition, first]):
        (folder,) = expand_all(paths)
        assert folder.is_whole
        assert [file.name for file in folder.files] == [file.name for file in expand(partition)[0].files]
    (some,) = expand_all([first])
    assert (len(some.files), some.is_whole) == (1, False)


def test_deleted_files_are_passed_over_and_swapped_ones_are_unfinished(partition: Path) -> None:
    first, second, *_ = sorted(partition.glob(f"*{LOG}"))
    first.rename(partition / f"{first.name}.deleted")
    second.rename(partition / f"{second.name}.swap")
    (folder,) = expand(partition)
    assert [file.name for file in folder.unfinished] == [f"{second.name}.swap"]
    assert {first.name, second.name}.isdisjoint(file.name for file in folder.files)


def test_the_files_of_a_segment_are_on_their_way_together(partition: Path) -> None:
    first = sorted(partition.glob(f"*{LOG}"))[0]
    deleted = first.rename(partition / f"{first.name}.deleted")
    assert named_file(deleted).sibling(OFFSET_INDEX).name == f"{first.stem}.index.deleted"
