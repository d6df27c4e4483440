"""The words that everyone uses: ids, releases, sizes, clocks, errors, small files, flags in rows, late names."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import broker
import broker.cluster
import spark_analysis
import spark_analysis.tables.schemas
from broker import errors
from broker.cli import kafka_option
from broker.clock import ManualClock
from broker.errors import BrokersideError, CorruptDataError, InputError, RefusedError, UsageError
from broker.ids import INT32_MAX, PartitionId, TopicPartition, broker_id
from broker.releases import KNOWN, NEWEST, Release
from broker.row_flags import any_in_row, count_in_row, distinct_in_row
from broker.small_files import PIECE_BYTES, read_pieces, read_small
from broker.units import SIZE_BYTES_MAX, DurationMs, TimeMs, format_size, parse_size
from tests.architecture.house import ROOT


@pytest.mark.parametrize("value", [-1, INT32_MAX + 1, 10**12, True, 1.0, "1", None])
def test_anything_else_is_refused_with_the_place_and_the_range(value: object) -> None:
    message = f"line 3 is {value!r}; allowed are whole numbers from 0 to 2147483647"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        broker_id(value, where="line 3")  # type: ignore[arg-type] # wrong on purpose.


def test_partitions_sort_by_topic_then_by_number() -> None:
    def at(topic: str, number: int) -> TopicPartition:
        return TopicPartition(topic, PartitionId(number))

    assert sorted([at("b", 0), at("a", 10), at("a", 2)]) == [at("a", 2), at("a", 10), at("b", 0)]


def test_a_partition_reads_as_its_directory_is_called() -> None:
    assert str(TopicPartition("my-topic", PartitionId(7))) == "my-topic-7"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("4.1", "4.1"),
        ("4.1.2", "4.1"),
        ("0.10.2", "0.10.2"),
        ("0.10.2.1", "0.10.2"),
        ("0.11.0.3", "0.11"),
        ("3.9", "3.9"),
    ],
)
def test_a_patch_number_is_dropped(text: str, name: str) -> None:
    assert str(Release(text)) == name


@pytest.mark.parametrize("text", ["", "4", "4.9", "44.1", "0.9.0", "4.3-SNAPSHOT", "4.1.", " 4.1", "\u0664.1", "4.1\n"])
def test_any_other_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"of Kafka is not known; allowed are 0\.10\.2 to 4\.4"):
        Release(text)


def test_releases_sort_by_age_and_not_by_letters() -> None:
    assert [str(one) for one in sorted(map(Release, reversed(KNOWN)))] == list(KNOWN)
    assert Release("0.10.2") < Release("0.11") < Release("2.8") < NEWEST


def test_the_option_passes_a_release_and_its_default_is_the_newest() -> None:
    @click.command()
    @kafka_option()
    def show(release: Release) -> None:
        click.echo(repr(release))

    run = CliRunner().invoke
    assert run(show, []).output == "Release(name='4.4')\n"
    assert run(show, ["--kafka", "4.0.1"]).output == "Release(name='4.0')\n"
    refused = run(show, ["--kafka", "5"])
    assert (refused.exit_code, "release '5' of Kafka is not known" in refused.output) == (2, True)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("512", 512),
        ("512 B", 512),
        ("64 KiB", 65_536),
        ("64KiB", 65_536),
        (" 2 GiB ", 2 * 1024**3),
        ("1.5 MiB", 1_572_864),
        ("7 EiB", 7 * 1024**6),
        (str(SIZE_BYTES_MAX), SIZE_BYTES_MAX),
    ],
)
def test_a_size_is_read(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "B", "-1", "1 KB", "1kib", "1e3", "1,5 MiB", "٣", "1 2", "0x10", "1." + "0" * 10])
def test_what_is_no_size_is_refused(text: str) -> None:
    message = f"size {text!r} is not a number of bytes, KiB, MiB, GiB, TiB, PiB or EiB"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        parse_size(text)


@pytest.mark.parametrize("text", [str(SIZE_BYTES_MAX + 1), "8 EiB", "9999999999999999999 EiB"])
def test_more_than_a_java_long_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"^size '{text}' is more than {SIZE_BYTES_MAX} bytes$"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2 * 1024**3, "2 GiB"),
        (-1536, "-1.5 KiB"),
        (1.5, "1.5 B"),
        (1024**6, "1 EiB"),
        (1024**7, "1024 EiB"),
    ],
)
def test_a_size_is_printed_for_people(size_bytes: float, text: str) -> None:
    assert format_size(size_bytes) == text


@given(st.integers(0, SIZE_BYTES_MAX // 2))
def test_a_printed_size_reads_back_within_its_rounding(size_bytes: int) -> None:
    # One decimal of a number that is at least 1: half of a tenth is the worst.
    assert abs(parse_size(format_size(size_bytes)) - size_bytes) <= max(1, size_bytes * 0.0501)


def test_it_starts_at_zero_and_advances_by_the_time_given() -> None:
    clock = ManualClock()
    assert clock.advance(DurationMs(500)) == 500
    assert clock.advance(DurationMs(0)) == 500
    assert clock.now_ms() == 500


def test_it_goes_back_only_when_that_is_allowed() -> None:
    clock = ManualClock(TimeMs(10))
    with pytest.raises(UsageError, match=r"^the clock stands at 10 ms and cannot go back to 9 ms$"):
        clock.set(TimeMs(9))
    assert clock.now_ms() == 10
    clock.set(TimeMs(10))
    clock.set(TimeMs(9), backwards=True)
    assert clock.now_ms() == 9
    clock.set(TimeMs(12))
    assert clock.now_ms() == 12


CLASSES = [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, BrokersideError)]
REFUSALS = [value for value in CLASSES if issubclass(value, RefusedError)]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.__name__)
def test_every_refusal_names_the_class_that_kafka_throws(refusal: type[RefusedError]) -> None:
    assert refusal.kafka_class.startswith(("org.apache.kafka.", "java.lang."))
    assert refusal is RefusedError or refusal.kafka_class != RefusedError.kafka_class


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "no brokers"),
        ({"source": "a.txt"}, "a.txt: no brokers"),
        ({"line": 3}, "line 3: no brokers"),
        ({"source": "a.txt", "line": 3}, "a.txt:3: no brokers"),
        ({"source": "a.txt", "line": 3, "value": "x\ny"}, "a.txt:3: no brokers (found 'x\\ny')"),
        ({"value": ""}, "no brokers (found '')"),
    ],
)
def test_an_input_error_says_what_where_and_which_value(fields: dict[str, object], message: str) -> None:
    error = InputError("no brokers", **fields)  # type: ignore[arg-type] # the fields of each case.
    assert str(error) == message
    assert isinstance(error, UsageError)
    assert (error.what, error.source, error.line) == ("no brokers", fields.get("source", ""), fields.get("line"))


def test_an_input_error_keeps_the_whole_value_and_shows_its_beginning() -> None:
    error = InputError("too long", value="x" * 1000)
    assert error.value == "x" * 1000
    assert str(error) == f"too long (found '{'x' * 79}…')"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "wrong checksum"),
        ({"source": "0.log"}, "0.log: wrong checksum"),
        ({"source": "0.log", "position": 61}, "0.log at byte 61: wrong checksum"),
    ],
)
def test_damage_is_reported_with_its_byte(fields: dict[str, object], message: str) -> None:
    error = CorruptDataError("wrong checksum", **fields)  # type: ignore[arg-type] # the fields of each case.
    assert str(error) == message
    assert error.position == fields.get("position")


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


@given(st.integers(0, 40), st.integers(0, 70), st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.5]))
def test_rows_are_reduced_as_by_numpy(height: int, width: int, seed: int, share: float) -> None:
    flags = np.random.default_rng(seed).random((height, width)) < share
    found, counts = any_in_row(flags), count_in_row(flags)
    assert found.dtype == np.bool_
    assert counts.dtype == np.int64
    assert found.tolist() == flags.any(axis=1).tolist()
    assert counts.tolist() == np.count_nonzero(flags, axis=1).tolist()


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 2**32 - 1), st.integers(-1, 5))
def test_distinct_ids_are_those_of_each_row_by_itself(height: int, width: int, seed: int, most: int) -> None:
    rows = np.random.default_rng(seed).integers(-2, most + 1, (height, width), dtype=np.int32)
    before = rows.copy()
    found = distinct_in_row(rows)
    assert found.dtype == np.int64
    assert found.tolist() == [np.unique(row[row >= 0]).size for row in rows]
    assert rows.tolist() == before.tolist()


@pytest.mark.parametrize("package", [broker, spark_analysis])
def test_every_public_name_is_there(package: object) -> None:
    names: tuple[str, ...] = package.__all__  # type: ignore[attr-defined] # a package, which has it
    assert [name for name in names if not hasattr(package, name)] == []


def test_a_name_that_is_not_there_is_an_attribute_error_as_python_words_it() -> None:
    with pytest.raises(AttributeError) as caught:
        broker.NoSuchName  # type: ignore[attr-defined] # noqa: B018 - asked for, so that it fails.
    assert str(caught.value) == "module 'broker' has no attribute 'NoSuchName'"


def test_the_words_that_everyone_uses_load_no_numpy() -> None:
    script = "import sys, broker; print('numpy' in sys.modules); broker.ClusterView; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")
