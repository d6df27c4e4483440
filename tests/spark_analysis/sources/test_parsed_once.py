"""Each dump is parsed once in a run, by the task that reads it; the driver of a data source opens none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from spark_analysis.data_sources.kafka_cluster import KafkaClusterSource
from spark_analysis.sources import dumps
from tests.placement.formats.samples import HEADER, ROW_0, ROW_1

FILES = 5


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often each source is parsed."""
    counts: Counter[str] = Counter()

    def counted(chunks: Any, *, source: str, **named: Any) -> Any:
        counts[source] += 1
        return read_dump(chunks, source=source, **named)

    read_dump = dumps.read_dump
    monkeypatch.setattr(dumps, "read_dump", counted)
    return counts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of dumps."""
    (tmp_path / "dumps").mkdir()
    for number in range(FILES):
        (tmp_path / "dumps" / f"cluster-{number}.txt").write_text(HEADER + ROW_0 + ROW_1)
    return tmp_path / "dumps"


def test_a_report_parses_each_dump_once(folder: Path, tmp_path: Path, parsed: Counter[str]) -> None:
    words = ["report", str(folder), "--engine", "local", "--quiet", "--out", str(tmp_path / "out")]
    assert run(brokerside, "brokerside", words) == 0
    assert parsed == {str(path): 1 for path in folder.iterdir()}


def test_kafka_cluster_opens_no_dump_on_the_driver_and_parses_each_once_in_its_tasks(
    folder: Path, parsed: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = (folder / "cluster-0.txt").stat().st_size
    source = KafkaClusterSource({"path": str(folder), "task_bytes": str(2 * size_bytes)})
    with monkeypatch.context() as patches:
        patches.setattr("io.open", None)
        patches.setattr("builtins.open", None)
        reader = source.reader(source.schema())
        partitions = reader.partitions()
    assert [len(each.value) for each in partitions] == [2, 2, 1]
    assert not parsed
    rows = sum(batch.num_rows for each in partitions for batch in reader.read(each))
    assert rows == 2 * FILES
    assert parsed == {str(path): 1 for path in folder.iterdir()}
