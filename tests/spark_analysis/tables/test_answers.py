"""Answers in folders: whole files, earlier answers replaced, nobody else's files touched."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.errors import InputError, UsageError
from spark_analysis.tables.answers import write_answer

TABLE = pa.table({"n": [1, 2]})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_later_answer_replaces_an_earlier_one_and_removes_its_other_files(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    write_answer(out, "outage", {"a.parquet": TABLE, "a.json": "1\n", "old.json": "2\n"})
    assert pq.read_table(out / "a.parquet").equals(TABLE)
    (out / "mine.txt").write_text("mine")
    write_answer(out, "roll", {"a.json": "3\n"})
    assert names(out) == ["a.json", "answer.json", "mine.txt"]
    assert (out / "a.json").read_text() == "3\n"
    with pytest.raises(InputError, match=r"holds a file mine\.txt that no earlier answer wrote"):
        write_answer(out, "roll", {"mine.txt": ""})
    assert (out / "mine.txt").read_text() == "mine"


def test_a_folder_of_somebody_elses_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no earlier answer; choose a new folder"):
        write_answer(tmp_path, "outage", {"a.json": ""})
    assert names(tmp_path) == ["mine.txt"]
    with pytest.raises(InputError, match="is not a folder"):
        write_answer(tmp_path / "mine.txt", "outage", {"a.json": ""})


def test_a_listed_name_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("v")
    out = tmp_path / "out"
    out.mkdir()
    (out / "answer.json").write_text('{"files": ["../victim"]}')
    with pytest.raises(InputError, match="holds no earlier answer"):
        write_answer(out, "outage", {"a.json": ""})
    assert (tmp_path / "victim").exists()
    with pytest.raises(UsageError, match="named without folders"):
        write_answer(out, "outage", {"../a.json": ""})


def test_a_failed_write_leaves_the_earlier_answer_whole(tmp_path: Path) -> None:
    write_answer(tmp_path / "out", "outage", {"a.json": "1\n", "b.json": "1\n"})
    with pytest.raises(UnicodeEncodeError):
        write_answer(tmp_path / "out", "outage", {"a.json": "2\n", "b.json": "\ud800"})
    assert (tmp_path / "out" / "a.json").read_text() == "1\n"
    assert names(tmp_path / "out") == ["a.json", "answer.json", "b.json"]
    with pytest.raises(UnicodeEncodeError):
        write_answer(tmp_path / "fresh", "outage", {"a.json": "\ud800"})
    assert not (tmp_path / "fresh").exists()
