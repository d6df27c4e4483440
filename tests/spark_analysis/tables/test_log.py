"""Log files as Parquet, against reading them record by record; no Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from broker.errors import InputError
from log.batches.in_buffer import batches_in
from log.errors import StorageError
from log.segments.file_names import LOG
from log.tools.findings import Problems
from log.tools.sources import expand
from spark_analysis.cli.commands import brokerside
from spark_analysis.tables.log import ROW_GROUP_BYTES, write_log_tables
from tests.log.samples import DIRECTORY, SAMPLES, write_sample


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


@pytest.mark.parametrize("size_bytes", [1, 200, ROW_GROUP_BYTES])
@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_tables_hold_what_the_log_holds_in_row_groups_of_any_size(
    tmp_path: Path, sample: str, size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(sample, tmp_path)
    monkeypatch.setattr("spark_analysis.tables.log.ROW_GROUP_BYTES", size_bytes)
    folders = expand(tmp_path / DIRECTORY)
    write_log_tables(folders, tmp_path / "out", Problems(), lambda _: None)
    files = [file for folder in folders for file in folder.of_kind(LOG)]
    batches = [(file.shown, batch) for file in files for batch in batches_in(file.view())]
    assert rows(tmp_path / "out" / "records.parquet") == [
        {
            "file": name,
            "batch_position": batch.position,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "is_control": batch.is_control,
            "key": record.key,
            "value": record.value,
            "headers": [{"name": header.name, "value": header.value} for header in record.headers],
        }
        for name, batch in batches
        for record in batch.records()
    ]
    records = pq.read_metadata(tmp_path / "out" / "records.parquet")
    assert (records.num_row_groups == records.num_rows) is (size_bytes == 1)
    assert (records.num_row_groups == 1) is (size_bytes == ROW_GROUP_BYTES)
    found = rows(tmp_path / "out" / "batches.parquet")
    assert [(row["file"], row["position"], row["codec"]) for row in found] == [
        (name, batch.position, batch.codec.name.lower()) for name, batch in batches
    ]
    plain = ("base_offset", "last_offset", "crc", "record_count", "producer_id", "is_transactional", "max_timestamp")
    for row, (_, batch) in zip(found, batches, strict=True):
        assert {name: row[name] for name in plain} == {name: getattr(batch, name) for name in plain}
    assert rows(tmp_path / "out" / "damages.parquet") == []


def test_damage_is_a_row_and_the_rest_is_there(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    path = tmp_path / DIRECTORY / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    write_log_tables(expand(tmp_path / DIRECTORY), tmp_path / "out", Problems(), lambda _: None)
    damage = rows(tmp_path / "out" / "damages.parquet")
    assert [(row["file"], row["position"], row["base_offset"]) for row in damage] == [(str(path), 0, 0)]
    assert pq.read_metadata(tmp_path / "out" / "records.parquet").num_rows == 177


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    with pytest.raises(InputError, match="is not empty; tables go to a new folder"):
        write_log_tables(expand(tmp_path / DIRECTORY), tmp_path, Problems(), lambda _: None)


def test_the_command_writes_them(tmp_path: Path) -> None:
    write_sample("lz4", tmp_path)
    words = ["log", "dump", str(tmp_path / DIRECTORY), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(brokerside, words, standalone_mode=False, catch_exceptions=False)
    assert result.output.splitlines()[1] == f"{tmp_path / 'out' / 'records.parquet'}: 180 rows"


def test_damage_in_what_tables_are_made_of_is_told_with_status_1(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    path = tmp_path / DIRECTORY / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    result = CliRunner().invoke(
        brokerside, ["log", "dump", str(path), "--out", str(tmp_path / "out")], standalone_mode=False
    )
    assert result.return_value == 1
    assert result.stderr.startswith(f"{path}: at byte 0, batch at offset 0: Record is corrupt")
    assert result.stderr.endswith("passed over: 128 bytes, 1 batch\n")


def test_tables_that_cannot_be_finished_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sample("none", tmp_path)
    (tmp_path / "a-file").write_text("")
    with pytest.raises(StorageError, match=r"^cannot write to .*/a-file/out: Not a directory$"):
        write_log_tables(expand(tmp_path / DIRECTORY), tmp_path / "a-file" / "out", Problems(), lambda _: None)

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_log_tables(expand(tmp_path / DIRECTORY), tmp_path / "out", Problems(), interrupted)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_name_that_is_not_utf8_is_escaped_in_tables(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"topic\xff-0")
    write_sample("none", tmp_path)
    (tmp_path / DIRECTORY).rename(folder)
    write_log_tables(expand(folder), tmp_path / "out", Problems(), lambda _: None)
    assert "topic\\udcff-0/" in rows(tmp_path / "out" / "records.parquet")[0]["file"]
