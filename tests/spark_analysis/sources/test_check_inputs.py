"""Inputs are looked at before a job begins, 64 KiB of each at most, and nothing is parsed: is any of them a dump?"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.errors import InputError, UsageError
from placement.formats.read import HEAD_BYTES
from spark_analysis.sources import dumps, files
from spark_analysis.sources.inputs import check_inputs, dump_inputs, moment
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
    for path in (large, packed, document, PRINTED / "topics-describe.txt", REAL_DATA / "kraft"):
        check(path)
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
        (gzip.compress(b"hello world: 1\n", mtime=0), "1: not a dump of a known format; known are "),
        (gzip.compress(DUMP, mtime=0)[:-9], " the compressed data is damaged: "),
    ],
)
def test_a_short_file_of_no_known_format_is_refused_unless_it_stands_beside_a_good_one(
    tmp_path: Path, data: bytes, message: str
) -> None:
    good, bad, worse = tmp_path / "good.txt", tmp_path / "bad.txt", tmp_path / "worse.txt"
    good.write_bytes(DUMP)
    bad.write_bytes(data)
    worse.write_bytes(b"nothing of the kind\n")
    with pytest.raises(InputError) as caught:
        check(bad)
    assert str(caught.value).startswith(f"{bad}:{message}")
    with pytest.raises(InputError) as caught:
        check(bad, worse)
    assert str(caught.value).startswith(f"none of the 2 inputs can be used; the first: {bad}:{message}")
    check(bad, good, worse)


def test_moments_of_a_dump_are_refused_and_a_damaged_log_beside_a_good_one_is_not(tmp_path: Path) -> None:
    log, dump, damaged = REAL_DATA / "kraft" / "__cluster_metadata-0", tmp_path / "dump.txt", tmp_path / "damaged.log"
    dump.write_bytes(DUMP)
    damaged.write_bytes(b"\x00\xff" * 40)
    at = (moment("168"),)
    check_inputs(dump_inputs([str(damaged), str(log)], None, None, at))
    with pytest.raises(InputError) as caught:
        check_inputs(dump_inputs([str(log), str(dump)], None, None, at))
    assert str(caught.value) == f"{dump}: is no metadata log, of which alone moments can be asked"


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (("a/prod.txt", "other=b.txt"), ["prod", "other"]),
        (("a/prod.txt", "b.txt", "a/prod.txt"), ["prod", "b"]),
        (("prod=a.txt", "stage=a.txt"), ["prod", "stage"]),
    ],
)
def test_an_input_has_the_name_of_its_file_or_the_one_given(given: tuple[str, ...], names: list[str]) -> None:
    assert [dump.name for dump in dump_inputs(given, None, None)] == names


CALLED = (
    "its cluster is 'prod', as that of another input is; name them apart, by NAME=FILE or the option cluster, or "
    "name their common folder"
)


@pytest.mark.parametrize("moments", [None, True, False])
def test_two_files_that_are_given_one_name_are_refused(moments: bool | None) -> None:
    with pytest.raises(UsageError) as caught:
        dump_inputs(("prod=a.txt", "b.txt", "prod=c.txt"), None, moments)
    assert str(caught.value) == f"a.txt: {CALLED}: c.txt"


def test_two_files_whose_own_names_are_one_are_refused_unless_they_are_moments() -> None:
    nights = "2026-11-27/prod.txt", "2026-11-28/prod.txt"
    with pytest.raises(UsageError) as caught:
        dump_inputs(nights, None, False)
    assert str(caught.value) == f"{nights[0]}: {CALLED}: {nights[1]}"
    assert [dump.name for dump in dump_inputs(nights, None, True)] == ["prod 2026-11-27", "prod 2026-11-28"]


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
