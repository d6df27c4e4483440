"""Every golden case of log storage in the archive, one test a case: what Kafka's own log did is what ours does."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.golden.files import run_folder
from tests.golden.log import LOG_RUNNERS
from tests.golden.log.cases import CASE_NAME, UnsafeArchiveError, case_folders, run_case, unpack

ARCHIVE: Final = Path(__file__).parent / "log.tar.xz"

with tarfile.open(ARCHIVE, "r:xz") as _members:
    CASES: Final = sorted(Path(name).parent.name for name in _members.getnames() if Path(name).name == CASE_NAME)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("golden")
    unpack(ARCHIVE, folder)
    return {path.name: path for path in case_folders(folder)}


@pytest.mark.parametrize("case", CASES)
def test_our_log_does_what_kafkas_did(folders: dict[str, Path], case: str) -> None:
    assert run_case(folders[case], LOG_RUNNERS) is None


def test_the_archive_holds_cases_of_every_kind() -> None:
    kinds = Counter(case.partition("-")[0] for case in CASES)
    assert kinds == {
        "batch": 39,
        "checkpoint": 1,
        "compact": 31,
        "corrupt": 5,
        "log": 32,
        "logdir": 1,
        "recover": 2,
        "segment": 16,
    }


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
