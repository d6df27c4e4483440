"""Inputs are looked at before a job begins: 64 KiB of each at most, nothing parsed, and unknown formats refused."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.errors import InputError
from placement.formats.read import HEAD_BYTES
from spark_analysis.sources import dumps, files
from spark_analysis.sources.inputs import check_inputs, dump_inputs
from tests.placement.formats.samples import HEADER, PRINTED, REAL_DATA, ROW_0, ROW_1

DUMP = (HEADER + ROW_0 + ROW_1).encode()


def check(*paths: Path, named: str | None = None) -> None:
    check_inputs(dump_inputs([str(path) for path in paths], named, None))


def test_no_more_than_64_kib_of_an_input_are_read_and_nothing_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: dict[str, int] = {}

    def counted(path: str, **options: Any) -> Iterator[bytes]:
        sizes[path] = 0
        for chunk in read_chunks(path, **options):
            sizes[path] += len(chunk)
            yield chunk

    read_chunks = files.read_chunks
    monkeypatch.setattr(files, "read_chunks", counted)
    monkeypatch.setattr(dumps, "read_dump", None)
    monkeypatch.setattr(dumps, "read_metadata", None)
    large, packed, document = tmp_path / "large.txt", tmp_path / "packed.txt.gz", tmp_path / "large.json"
    large.write_bytes(DUMP * 5_000)
    packed.write_bytes(gzip.compress(DUMP * 5_000))
    document.write_bytes(b'{"partitions": [' + b" " * HEAD_BYTES)
    check(large, packed, document, PRINTED / "topics-describe.txt", REAL_DATA / "kraft")
    assert sizes[str(large)] == sizes[str(packed)] == sizes[str(document)] == HEAD_BYTES


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello world: 1\n", "1: not a dump of a known format; known are "),
        (b"orders\npayments\n", "1: not a dump of a known format but a list of names, "),
        (b'{"a": 1}', "1: a JSON object of no known format; known are "),
        (b'{"version": 1', "1: the JSON is damaged at column 14: "),
        (b'{"topics": []}', "1: this is a list of topics to move, "),
        (
            b'{"version":1,"partitions":[]}\n{"a": 1}',
            "2: a JSON object of no known format; it was to be kafka-reassign-partitions (found ",
        ),
        (gzip.compress(b"hello world: 1\n"), "1: not a dump of a known format; known are "),
        (gzip.compress(DUMP)[:-9], " the compressed data is damaged: "),
    ],
)
def test_a_short_file_of_no_known_format_is_refused_beside_a_good_one(
    tmp_path: Path, data: bytes, message: str
) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_bytes(DUMP)
    bad.write_bytes(data)
    with pytest.raises(InputError) as caught:
        check(good, bad)
    assert str(caught.value).startswith(f"{bad}:{message}")


@pytest.mark.parametrize(
    "data",
    [
        b'{"errorMessage": "not ready"}',
        b'{"version":1,"partitions":[]}',
        b"WARN slow broker\n" * 10_000 + DUMP,
        DUMP.replace(b"Leader: 1", b"Leader: x"),
        DUMP.decode().encode("utf-16"),
        b" " * HEAD_BYTES + b'{"a": 1}',
    ],
)
def test_what_the_beginning_does_not_decide_is_left_to_the_task_that_reads_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    check(path)


def test_a_named_format_is_the_one_that_is_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b'{"version":1,"partitions":[]}')
    with pytest.raises(InputError, match="it was to be kcat"):
        check(path, named="kcat")
    with pytest.raises(InputError, match="no line describes a topic or a partition"):
        check(path, named="kafka-topics")
