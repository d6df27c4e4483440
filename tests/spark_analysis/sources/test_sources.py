"""Input files: bounded pieces, and one sentence for a file that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.errors import InputError
from spark_analysis.sources.files import check_readable, read_chunks, read_small_file


def test_chunks_are_bounded_and_join_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    chunks = list(read_chunks(str(path), chunk_size_bytes=4))
    assert chunks == [b"0123", b"4567", b"89"]


def test_an_empty_file_has_no_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    assert list(read_chunks(str(path))) == []


def test_a_small_file_may_be_as_large_as_allowed_and_no_larger(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123")
    assert read_small_file(str(path), size_bytes_max=4) == b"0123"
    with pytest.raises(InputError) as caught:
        read_small_file(str(path), size_bytes_max=3)
    assert str(caught.value) == f"{path}: larger than the 3 bytes allowed for such a file"


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(InputError) as caught:
        list(read_chunks(missing))
    assert str(caught.value) == f"{missing}: cannot be read: no such file or directory"
    with pytest.raises(InputError) as caught:
        check_readable(missing)
    assert str(caught.value) == f"{missing}: cannot be read: no such file or directory"
    check_readable(str(tmp_path))  # A metadata log is a directory.
