"""The jobs end to end: every table, the same rows however the work is split, and errors as one sentence."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from broker.errors import InputError
from spark_analysis.engines import Found, LocalEngine
from spark_analysis.fleet.generate import Fleet
from spark_analysis.jobs import analyse_dumps, analyse_fleet
from spark_analysis.kernels import Kernel, dumps_kernel, fleet_kernel
from spark_analysis.session.progress import progress
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.spark_engine import SparkEngine
from spark_analysis.tables import schemas
from spark_analysis.tables.batching import TableBatch
from spark_analysis.tables.columns import Table
from spark_analysis.tables.place import Place
from spark_analysis.tables.scan import parquet_files
from spark_analysis.tables.write import read_table
from tests.spark_analysis.fleet.test_fleet import recipe
from tests.spark_analysis.test_kernels import DESCRIBE, rows_of

QUIET = functools.partial(progress, quiet=True)
MULTIREGION = Path(__file__).parents[1] / "real_data" / "multiregion"


def rows(out: Path, table: Table) -> list[dict[str, Any]]:
    return read_table(out, table).to_pylist()


class Watched(LocalEngine):
    """Let a function see a kernel before it is run, and keep the parts of the work that it is run on."""

    def __init__(self, wrapped: Callable[[Kernel], Kernel] = lambda kernel: kernel) -> None:
        super().__init__()
        self.wrapped = wrapped
        self.seen: list[range] = []

    def found(self, kernel: Kernel, parts: Sequence[range], out: Place) -> AbstractContextManager[Found]:
        self.seen += parts
        return super().found(self.wrapped(kernel), parts, out)


def elsewhere(kernel: Kernel) -> Kernel:
    """Run a kernel in another working folder than the job's, as executors of a cluster do."""

    def run(numbers: Iterable[int]) -> Iterator[TableBatch]:
        with contextlib.chdir("/"):
            yield from list(kernel(numbers))

    return run


@pytest.fixture(scope="module")
def fleet_out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fleet")
    analyse_fleet(SparkEngine(spark), recipe(11), out, progress=QUIET)
    return out


def tables(out: Path) -> dict[str, str]:
    """The digest of the rows of each table under `out`, whatever their order and files."""
    found = {}
    for folder in sorted((out / "tables").iterdir()):
        table = scan_of(folder).to_pylist()
        found[folder.name] = hashlib.sha256("\n".join(sorted(map(repr, table))).encode()).hexdigest()
    return found


def scan_of(folder: Path) -> pa.Table:
    """The rows of a whole table."""
    return pa.concat_tables(
        (pq.read_table(path).replace_schema_metadata(None) for path in parquet_files(folder)),
        promote_options="permissive",
    )


def test_a_fleet_is_the_same_rows_whatever_the_partitioning() -> None:
    """One part, and three."""
    kernel, made = fleet_kernel(Fleet.of(recipe(11))), []
    for parts in ([range(10)], [range(4), range(4, 5), range(5, 10)]):
        found = rows_of(batch for part in parts for batch in kernel(part))
        made.append({table.name: rows.to_pylist() for table, rows in found.items()})
    assert made[0] == made[1]
    assert len(made[0]["facts"]) == 20


def test_tables_are_equal_on_any_number_of_cores(fleet_out: Path, tmp_path: Path) -> None:
    """The session of the tests has one core; a process with a session of its own has two."""
    program = (
        "import sys; from pathlib import Path; from spark_analysis.session.spark_session import spark_session\n"
        "from tests.spark_analysis.test_jobs import *\n"
        "with spark_session(app_name='two', master='local[2]') as spark:\n"
        "    analyse_fleet(SparkEngine(spark), recipe(11), Path(sys.argv[1]), progress=QUIET)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True)
    assert tables(tmp_path) == tables(fleet_out)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_nothing_of_a_run_is_left_beside_its_tables(fleet_out: Path, tmp_path: Path, engine: str) -> None:
    if engine == "local":
        analyse_fleet(LocalEngine(), recipe(11), tmp_path, progress=QUIET)
    out = fleet_out if engine == "spark" else tmp_path
    assert sorted(path.name for path in out.iterdir()) == ["tables"]
    assert {path.name for path in (out / "tables").iterdir()} == {table.name for table in schemas.TABLES}


def test_a_fleet_writes_every_table(fleet_out: Path) -> None:
    out = fleet_out
    counts = {table.name: len(rows(out, table)) for table in schemas.TABLES}
    clusters = rows(out, schemas.CLUSTERS)
    assert counts["clusters"] == 20
    assert counts["brokers"] == sum(row["broker_count"] for row in clusters)
    assert counts["topics"] == sum(row["topic_count"] for row in clusters)
    assert (counts["inputs"], counts["rejects"], counts["changes"]) == (1, 0, 0)
    assert min(counts["measures"], counts["racks"], counts["violations"], counts["pairs"]) > 0
    assert sorted(row["rank"] for row in clusters) == list(range(1, 21))


def test_small_dumps_share_a_part_of_the_work_and_a_series_is_never_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}.txt" for number in range(6)]
    for path in paths:
        path.write_text(DESCRIBE.format(1, "1,2"), encoding="utf-8")
    inputs = [DumpInput(str(path), series="moments" if path in paths[2:5] else None) for path in paths]
    size_bytes = paths[0].stat().st_size
    for name, dumps_per_task, counts in (("whole", 6, [6]), ("two", 2, [2, 3, 1])):
        monkeypatch.setattr("spark_analysis.jobs.DUMP_BYTES_PER_TASK", dumps_per_task * size_bytes)
        engine = Watched()
        analyse_dumps(engine, inputs, None, tmp_path / name, progress=QUIET)
        assert [sum(3 if number == 2 else 1 for number in part) for part in engine.seen] == counts
    assert rows(tmp_path / "whole", schemas.CHANGES) == rows(tmp_path / "two", schemas.CHANGES) == []
    for table in schemas.TABLES:
        assert rows(tmp_path / "whole", table) == rows(tmp_path / "two", table), table.name


def write_dumps(folder: Path) -> tuple[Path, Path]:
    """A good dump, and an answer of a known format that describes nothing."""
    good, error = folder / "good.txt", folder / "error.json"
    good.write_text(DESCRIBE.format(1, "1,2"), encoding="utf-8")
    error.write_text('{"errorMessage": "not ready"}', encoding="utf-8")
    return good, error


def test_a_file_of_sizes_that_cannot_be_used_ends_the_job_before_a_table_is_written(tmp_path: Path) -> None:
    """The user has given it for this very cluster; a dump of no use beside it changes nothing."""
    good, bad = write_dumps(tmp_path)
    inputs = [DumpInput(str(bad)), DumpInput(str(good), sizes=str(bad))]
    with pytest.raises(InputError) as caught:
        analyse_dumps(LocalEngine(), inputs, None, tmp_path / "out", progress=QUIET)
    assert str(caught.value).startswith(f"{bad}:1: ")
    assert not (tmp_path / "out").exists()


def test_a_relative_path_is_read_by_executors_in_another_folder_under_the_name_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dumps, one of which holds nothing, sizes and a metadata log's folder: tables name what was named."""
    real_data = MULTIREGION.parent
    write_dumps(tmp_path)
    (tmp_path / "log").symlink_to(real_data / "kraft" / "__cluster_metadata-0")
    sizes = '{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","error":null,"partitions":' \
            '[{"partition":"t-0","size":7,"offsetLag":0,"isFuture":false}]}]}]}'  # fmt: skip
    (tmp_path / "sizes.json").write_text(sizes, encoding="utf-8")
    inputs = [DumpInput("good.txt", sizes="sizes.json"), DumpInput("error.json"), DumpInput("log")]
    monkeypatch.chdir(tmp_path)
    for engine, out in ((LocalEngine(), "here"), (Watched(elsewhere), "elsewhere")):
        analyse_dumps(engine, inputs, None, Path(out), progress=QUIET)
    assert tables(tmp_path / "elsewhere") == tables(tmp_path / "here") != {}
    sources = {row["source"] for table in (schemas.INPUTS, schemas.REJECTS) for row in rows(tmp_path / "here", table)}
    assert sources == {"good.txt", "sizes.json", "error.json", "log"}


def test_spark_parses_a_dump_once_for_all_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = spark.sparkContext.accumulator(0)

    def counted(*arguments: Any) -> Kernel:
        kernel = dumps_kernel(*arguments)

        def run(numbers: Iterable[int]) -> Iterator[TableBatch]:
            for number in numbers:
                count.add(1)
                yield from kernel([number])

        return run

    monkeypatch.setattr("spark_analysis.jobs.dumps_kernel", counted)
    inputs = [DumpInput(str(path)) for path in sorted(MULTIREGION.glob("?-*.txt"))]
    analyse_dumps(SparkEngine(spark), inputs, None, tmp_path, progress=QUIET)
    assert count.value == len(inputs) == len(rows(tmp_path, schemas.CLUSTERS))
