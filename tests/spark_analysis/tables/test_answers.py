"""Answers in folders: whole files, earlier answers replaced, nobody else's files touched."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.errors import InputError, UsageError
from spark_analysis.tables.answers import claimed_folder, write_answer

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


NAMES = ("report.html", "tables")


def claim(out: Path) -> None:
    with claimed_folder(out, "report", NAMES):
        (out / "report.html").write_text("ours")
        (out / "tables").mkdir(exist_ok=True)


def test_a_claimed_folder_is_taken_again_and_by_no_other_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    claim(out)
    claim(out)
    (out / "mine.txt").write_text("mine")
    claim(out)
    assert names(out) == ["answer.json", "mine.txt", "report.html", "tables"]
    with pytest.raises(InputError, match="holds a report; choose a new folder"):
        write_answer(out, "plan", {"plan.json": ""})
    write_answer(tmp_path / "plan", "plan", {"plan.json": ""})
    with pytest.raises(InputError, match=r"holds plan\.json, an answer of another command"):
        claim(tmp_path / "plan")


@pytest.mark.parametrize("is_claimed", [False, True])
def test_links_and_files_of_others_are_not_followed_and_not_replaced(tmp_path: Path, is_claimed: bool) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    other.mkdir()
    if is_claimed:
        claim(out)
        (out / "tables").rmdir()
    else:
        out.mkdir()
        (out / "report.html").write_text("mine")
    (out / "tables").symlink_to(other)
    with pytest.raises(InputError, match="not followed" if is_claimed else "no earlier answer"):
        claim(out)
    assert (out / "report.html").read_text() == ("ours" if is_claimed else "mine")
    assert names(other) == []


def test_a_run_that_fails_before_it_writes_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), claimed_folder(tmp_path / "out", "report", NAMES):
        raise ZeroDivisionError
    assert names(tmp_path) == []
