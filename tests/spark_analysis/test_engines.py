"""Both engines write equal tables, of which the same page is made, and without Spark pyspark is not imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession

from broker.cli import run
from broker.errors import InputError
from placement.formats.member_zones import read_member_zones
from placement.formats.racks import read_racks
from spark_analysis.answers.registry import QUESTIONS, asked_of
from spark_analysis.cli.commands import brokerside
from spark_analysis.cli.running import LOCAL_BYTES_MAX, RunOptions, is_local
from spark_analysis.engines import Engine, LocalEngine
from spark_analysis.jobs import analyse_dumps, analyse_fleet
from spark_analysis.report import RunInfo, load_report, report_html
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.spark_engine import SparkEngine
from spark_analysis.tables import schemas
from spark_analysis.tables.write import read_table
from tests.placement.formats.test_group_tables import printed
from tests.spark_analysis.answers.test_given_groups import dump
from tests.spark_analysis.bad_inputs import UNUSABLE
from tests.spark_analysis.fleet.test_fleet import recipe
from tests.spark_analysis.test_jobs import MULTIREGION, QUIET, tables

RACKS = MULTIREGION.parent / "multiregion-racks.csv"
Job: TypeAlias = Callable[[Engine, Path], None]
ASKED = asked_of(tuple(QUESTIONS), ())
DUMPS = sorted(MULTIREGION.glob("?-*.txt"))


def fleet(engine: Engine, out: Path) -> None:
    """A fleet whose pairs of brokers are counted of two clusters, with a row for every partition."""
    analyse_fleet(engine, recipe(23, fenced=0.3), out, progress=QUIET, partitions=True, shown_in_full_max=2,
                  asked=ASKED)  # fmt: skip


def dumps(engine: Engine, out: Path) -> None:
    """Six dumps of one cluster and four of others, one with a reject, in three tasks; two have their pairs listed."""
    series = [DumpInput(str(path), name=path.stem, series="moments") for path in DUMPS]
    others = [DumpInput(str(path), name=f"other {path.stem}") for path in DUMPS[:4]]
    analyse_dumps(engine, [*others[:2], *series, *others[2:]], read_racks(RACKS.read_bytes(), source="racks"), out,
                  progress=QUIET, min_insync_replicas_default=2, asked=ASKED)  # fmt: skip


def grouped(engine: Engine, out: Path) -> None:
    """Three clusters, one with its consumer groups in two files, one with a file for each of two moments."""
    folder = out.parent / "grouped"
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("dump", dump() + "\n" * 5_000),
        ("members", printed("members-verbose")),
        ("offsets", printed("offsets")),
    ):
        (folder / name).write_text(text)
    path, members, offsets = (str(folder / name) for name in ("dump", "members", "offsets"))
    inputs = [DumpInput(path, name="prod", groups=(members, offsets)), DumpInput(path, name="without"),
              DumpInput(path, name="first", series="moments", groups=(members,)),
              DumpInput(path, name="last", series="moments", groups=(offsets,))]  # fmt: skip
    analyse_dumps(engine, inputs, read_racks(b"1,east\n2,west\n", source="racks"), out, progress=QUIET,
                  asked=asked_of(("consumers", "traffic"), (), given_groups=True),
                  zones=read_member_zones(b"b-1,east\nb-2,west\nn-*,west\n", source="zones"))  # fmt: skip


def damaged(engine: Engine, out: Path) -> None:
    """Three dumps, one of them cut off in the middle, among files of no use of every kind."""
    folder = out.parent / "damaged"
    if not folder.exists():
        folder.mkdir()
        for number, (make, _) in enumerate(UNUSABLE.values()):
            make(folder / f"bad-{number}")
        (folder / "cut").write_bytes(DUMPS[0].read_bytes()[:900])
    bad = [DumpInput(str(path)) for path in sorted(folder.iterdir())]
    series = [DumpInput(str(path), name=path.stem, series="moments") for path in (DUMPS[0], folder / "bad-0", DUMPS[1])]
    analyse_dumps(engine, [*bad[:3], *series, *bad[3:]], None, out, progress=QUIET)
    inputs = read_table(out, schemas.INPUTS).to_pylist()
    assert all(row["rows_in"] == row["rows_analysed"] + row["rows_rejected"] > 0 for row in inputs)
    assert sum(row["fault"] is not None for row in inputs) == len(UNUSABLE) + 1
    assert sum(row["rows_rejected"] for row in inputs) == read_table(out, schemas.REJECTS).num_rows


ANSWERED: dict[Job, list[str]] = {fleet: [one.name for one in ASKED], dumps: [one.name for one in ASKED],
                                  grouped: ["consumers", "traffic"], damaged: []}  # fmt: skip


@pytest.mark.parametrize("job", ANSWERED)
def test_the_tables_and_pages_of_both_engines_are_equal(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Job
) -> None:
    monkeypatch.setattr("spark_analysis.jobs.DUMP_BYTES_PER_TASK", 3 * DUMPS[0].stat().st_size)
    monkeypatch.setattr("spark_analysis.jobs.DETAILED_CLUSTERS_MAX", 2)
    monkeypatch.setattr("spark_analysis.spark_engine.COLLECTED_BYTES_MAX", 10_000)
    job(LocalEngine(), tmp_path / "local")
    job(SparkEngine(spark), tmp_path / "spark")
    by_spark = {path.parent.name for path in (tmp_path / "spark" / "tables").glob("*/part-*-c000.zstd.parquet")}
    assert by_spark, "Spark writes what the driver may not collect"
    assert "clusters" not in by_spark
    assert tables(tmp_path / "local") == tables(tmp_path / "spark")
    for table in (*schemas.TABLES, *(one.question.run_table for one in ASKED if one.name in ANSWERED[job])):
        assert read_table(tmp_path / "spark", table).schema.equals(table.arrow_schema(), check_metadata=True)
    info = RunInfo(kind="fleet" if job is fleet else "dumps", title="both", command="", version="1", asked=())
    pages = [report_html(load_report(tmp_path / name, info)) for name in ("local", "spark")]
    assert pages[0] == pages[1]
    filled = {table.name for table in schemas.TABLES if read_table(tmp_path / "local", table).num_rows}
    assert {"clusters", "measures", "pairs", "partitions"} <= filled
    answered = [one.question.run_table for one in ASKED if one.name in ANSWERED[job]]
    assert all(read_table(tmp_path / "local", table)["fault"].null_count for table in answered)
    pairs = read_table(tmp_path / "local", schemas.PAIRS, columns=["cluster_id", "placer"]).to_pylist()
    assert len({tuple(pair.values()) for pair in pairs}) == 2


@pytest.mark.deep
def test_a_command_in_this_process_imports_no_pyspark(tmp_path: Path) -> None:
    program = (
        "import sys; from broker.cli import run; from spark_analysis.cli.commands import brokerside\n"
        "status = run(brokerside, 'brokerside', sys.argv[1:])\n"
        "assert not {'pyspark', 'py4j'} & set(sys.modules)\n"
        "sys.exit(status)"
    )
    for command in (("report", *map(str, DUMPS)), ("fleet", "--engine", "local", "--clusters", "3")):
        arguments = [*command, "--json", "--quiet", "--out", str(tmp_path)]
        done = subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True)
        assert json.loads(done.stdout)
        assert "Spark" not in done.stderr
        assert (tmp_path / "report.html").exists()
    segments = "tests/real_data/kraft/__cluster_metadata-0"
    dumped = [sys.executable, "-c", program, "log", "dump", segments, "--out", str(tmp_path / "records")]
    assert "records.parquet" in subprocess.run(dumped, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("engine", "asks_for_spark", "is_small", "expected"),
    [
        ("auto", False, True, True),
        ("auto", False, False, False),
        ("auto", True, True, False),
        ("local", False, False, True),
        ("spark", False, True, False),
    ],
)
def test_auto_runs_small_work_here_unless_spark_is_asked_for(
    engine: str, asks_for_spark: bool, is_small: bool, expected: bool
) -> None:
    assert is_local(engine, asks_for_spark=asks_for_spark, is_small=is_small) is expected


def test_a_report_starts_spark_for_a_gibibyte_a_master_and_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[bool] = []

    def started(_: RunOptions, *, local: bool) -> Engine:
        chosen.append(local)
        raise InputError("seen", source="test")

    monkeypatch.setattr("spark_analysis.cli.running.started_engine", started)
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.write(DUMPS[0].read_bytes())
        file.truncate(LOCAL_BYTES_MAX)
    small = str(DUMPS[0])
    for arguments, local in (
        (("report", small), True),
        (("report", str(large)), False),
        (("report", small, "--master", "local[2]"), False),
        (("report", small, "--conf", "spark.ui.enabled=true"), False),
        (("report", small, "--engine", "spark"), False),
        (("report", str(large), "--engine", "local"), True),
        (("fleet", "--clusters", "3"), False),
        (("fleet", "--clusters", "3", "--engine", "auto"), True),
        (("fleet", "--clusters", "1001", "--engine", "auto"), False),
        (("fleet", "--clusters", "1001", "--engine", "local"), True),
    ):
        assert run(brokerside, "brokerside", [*arguments, "--out", str(tmp_path / "out")]) == 2
        assert chosen.pop() is local, arguments
        assert chosen == []


@pytest.mark.parametrize(("option", "value"), [("--master", "yarn"), ("--conf", "spark.executor.memory=4g")])
@pytest.mark.parametrize("command", ["report", "fleet"])
def test_an_option_of_spark_for_a_local_run_is_refused(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [command, *([str(DUMPS[0])] if command == "report" else []), "--engine", "local", option, value]
    assert run(brokerside, "brokerside", given) == 2
    expected = f"brokerside: {option} has no effect with --engine local; leave out one of the two\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (("spark.executor.memory",), "--conf takes a Spark setting, spark.NAME=VALUE, not 'spark.executor.memory'"),
        (("spark.executor.memory=",), "--conf takes a Spark setting, spark.NAME=VALUE, not 'spark.executor.memory='"),
        (("executor.memory=4g",), "--conf takes a Spark setting, spark.NAME=VALUE, not 'executor.memory=4g'"),
        (("spark.a b=4g",), "--conf takes a Spark setting, spark.NAME=VALUE, not 'spark.a b=4g'"),
        (("spark.master=yarn",), "--conf cannot set spark.master; give --master yarn"),
        (("spark.a=1", "spark.a=2"), "--conf gives spark.a two values, '1' and '2'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_sentence(
    values: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word for value in values for word in ("--conf", value)]
    assert run(brokerside, "brokerside", ["fleet", *given]) == 2
    assert capsys.readouterr().err == f"brokerside: {sentence}\n"
