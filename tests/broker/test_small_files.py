"""Files that are small by contract: up to the limit they are read whole, above it they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.errors import InputError
from broker.small_files import PIECE_BYTES, read_pieces, read_small


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^gone: cannot be read: no such file or directory$"):
        read_small(tmp_path / "gone", size_bytes_max=4)


def test_pieces_join_to_the_file_and_end_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_bytes(bytes(range(256)) * (PIECE_BYTES // 100))
    size = path.stat().st_size
    pieces = list(read_pieces(path, size_bytes_max=size))
    assert b"".join(pieces) == path.read_bytes()
    assert [len(piece) for piece in pieces] == [PIECE_BYTES, PIECE_BYTES, size - 2 * PIECE_BYTES]
    read = read_pieces(path, size_bytes_max=size - 1)
    assert [len(next(read)) for _ in range(2)] == [PIECE_BYTES, PIECE_BYTES]
    with pytest.raises(InputError, match=rf"^dump\.txt: larger than the {size - 1:,} bytes allowed for such a file$"):
        next(read)
