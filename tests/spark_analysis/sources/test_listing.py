"""Files that paths stand for: patterns, directories, metadata logs; and tasks of equal size."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from broker.errors import InputError
from spark_analysis.data_sources.source import grouped
from spark_analysis.sources.listing import Lookup, input_files
from tests.spark_analysis.data_sources.dumps import KRAFT, write


def paths(*given: object, recursive: bool = False) -> list[str]:
    return [file.path for file in input_files([str(path) for path in given], Lookup(recursive))]


def test_a_directory_stands_for_its_files_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden", "_SUCCESS", "day/c.txt"):
        write(tmp_path / name, "x")
    inside = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    assert paths(tmp_path) == inside
    assert paths(tmp_path, recursive=True) == [*inside, str(tmp_path / "day/c.txt")]
    assert paths(tmp_path / "*.txt", tmp_path / "b.txt") == inside
    assert paths(tmp_path / "**/*.txt") == [*inside, str(tmp_path / "day/c.txt")]


def test_a_metadata_log_is_one_input_however_it_is_named(tmp_path: Path) -> None:
    log = KRAFT / "__cluster_metadata-0"
    assert paths(KRAFT) == [str(KRAFT)]
    assert paths(log) == [str(log)]
    os.symlink(log, tmp_path / "controller", target_is_directory=True)
    write(tmp_path / "a.txt", "x")
    assert paths(tmp_path, recursive=True) == [str(tmp_path / "a.txt"), str(tmp_path / "controller")]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none.txt", "cannot be read: no such file or directory"),
        ("*.json", "no file matches the pattern"),
        ("empty", "holds no file that is read; folders in it are read with recursiveFileLookup"),
    ],
)
def test_a_path_that_stands_for_nothing_is_one_sentence(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "empty" / "folder").mkdir(parents=True)
    with pytest.raises(InputError) as caught:
        paths(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {sentence}"


def test_a_directory_that_cannot_be_listed_is_left_to_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.txt", "x")
    (tmp_path / "closed").mkdir()
    listdir = os.listdir

    def refuse(path: Path) -> list[str]:
        if Path(path).name == "closed":
            raise PermissionError
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert paths(tmp_path, recursive=True) == [str(tmp_path / "a.txt"), str(tmp_path / "closed")]


def test_a_pipe_is_passed_over_in_a_folder_and_left_to_its_reader_where_it_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "x")
    os.mkfifo(tmp_path / "pipe")
    assert paths(tmp_path) == [str(tmp_path / "a.txt")]
    assert paths(tmp_path / "pipe") == [str(tmp_path / "pipe")]


@attrs.frozen
class Sized:
    path: str
    size_bytes: int


def test_tasks_take_inputs_until_they_are_full_and_a_large_one_has_its_own() -> None:
    files = [Sized(str(place), size) for place, size in enumerate((30, 30, 10, 200, 5, 5))]
    assert [[file.path for file in group] for group in grouped(files, 64)] == [["0", "1"], ["2"], ["3"], ["4", "5"]]
    assert grouped([], 64) == []
