"""Input files: bounded pieces, and one sentence for a file that cannot be read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pytest

from broker.errors import InputError
from spark_analysis.sources.files import check_readable, read_chunks, read_small_file


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_compressed_file_is_read_in_bounded_pieces_as_if_it_were_not(tmp_path: Path, codec: str) -> None:
    text = b"0123456789" * 1000
    path = tmp_path / "dump.any"
    with pa.output_stream(str(path), compression=codec) as file:
        file.write(text)
    assert path.stat().st_size < 500
    chunks = list(read_chunks(str(path), chunk_size_bytes=64))
    assert b"".join(chunks) == text
    assert max(map(len, chunks)) <= 64
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match=f"^{path}: the compressed data is damaged: "):
        list(read_chunks(str(path)))


def test_members_of_gzip_one_after_another_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one ") + gzip.compress(b"two"))
    assert b"".join(read_chunks(str(path))) == b"one two"


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


def test_a_pipe_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for read in (
        check_readable,
        lambda path: list(read_chunks(path)),
        lambda path: read_small_file(path, size_bytes_max=9),
    ):
        with pytest.raises(InputError) as caught:
            read(pipe)
        assert (
            str(caught.value) == f"{pipe}: not a regular file; executors read files, so save its content to one first"
        )
