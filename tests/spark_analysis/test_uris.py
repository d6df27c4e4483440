"""A run writes to any URI that Spark writes to, by the rules of folders of this machine, and reads back the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from spark_analysis.cli.running import RunOptions
from spark_analysis.engines import Engine
from spark_analysis.spark_engine import SparkEngine
from spark_analysis.tables.place import table_path
from spark_analysis.tables.schemas import CLUSTERS
from tests.spark_analysis.test_jobs import MULTIREGION, tables

DUMPS = [str(path.resolve()) for path in sorted(MULTIREGION.glob("?-*.txt"))]
Ran = Callable[..., int]


@pytest.fixture
def report(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Run `brokerside report` on the session of the tests, for which viewfs://lake/ is a folder of this machine."""
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path)
    spark.conf.set("fs.viewfs.mounttable.lake.link./data", f"file://{tmp_path}/lake")
    spark.conf.set("fs.viewfs.impl.disable.cache", "true")

    @contextmanager
    def started(_: RunOptions, *, local: bool) -> Iterator[Engine]:
        assert not local
        yield SparkEngine(spark)

    monkeypatch.setattr("spark_analysis.cli.running.started_engine", started)
    return lambda out, *words: run(
        brokerside, "brokerside", ["report", *DUMPS, "--out", out, "--separate", "--quiet", *words]
    )


def test_a_report_at_a_uri_is_that_of_a_folder(report: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only Spark reaches viewfs; file:/ names a folder, with every character as it stands, from any working folder."""
    uri, odd = "viewfs://lake/data/new/report", tmp_path / "a b%20#c"
    assert report(uri) == 0
    printed = capsys.readouterr().out
    assert f"Report: {uri}/report.html\n" in printed
    assert report(f"file://{odd}") == 0
    assert report(f"file:{tmp_path}/plain") == 0
    there, plain = tmp_path / "lake" / "new" / "report", tmp_path / "plain"
    assert tables(there) == tables(odd) == tables(plain) != {}
    names = sorted(path.name for path in plain.iterdir())
    assert sorted(path.name for path in there.iterdir() if path.suffix != ".crc") == names
    assert {"answer.json", "elections", "report.html", "report.json", "report.prom", "tables"} <= set(names)
    for name in names:
        if name.startswith("report."):
            one, other = ((out / name).read_text(encoding="utf-8") for out in (there, plain))
            assert one.replace(uri, "OUT") == other.replace(str(plain), "OUT"), name


def test_a_report_at_a_uri_replaces_an_earlier_one_and_nothing_else(
    report: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "lake" / "report"
    assert report("viewfs://lake/data/report", "--ask", "movement") == 0
    assert (there / "tables" / "movement").is_dir()
    (there / "elections" / "stale-unclean.json").write_text("{}", encoding="utf-8")
    assert report("viewfs://lake/data/report") == 0
    assert not (there / "tables" / "movement").exists()
    assert not (there / "elections" / "stale-unclean.json").exists()
    (tmp_path / "lake" / "mine").mkdir()
    (tmp_path / "lake" / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    capsys.readouterr()
    assert report("viewfs://lake/data/mine") == 2
    sentence = "is not empty and holds no earlier answer; choose a new folder"
    assert capsys.readouterr().err == f"brokerside: viewfs://lake/data/mine: {sentence}\n"
    assert [path.name for path in (tmp_path / "lake" / "mine").iterdir()] == ["notes.txt"]


def test_a_uri_that_spark_does_not_know_is_one_sentence(report: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    assert report("nowhere://lake/out") == 2
    sentence = 'Spark cannot write there: No FileSystem for scheme "nowhere"'
    assert capsys.readouterr().err == f"brokerside: nowhere://lake/out: {sentence}\n"


def test_a_run_that_fails_leaves_nothing_at_a_new_uri(report: Ran, tmp_path: Path) -> None:
    assert report("viewfs://lake/data/failed", "--sizes", "5-placement-switched=none.json") == 2
    assert list((tmp_path / "lake").iterdir()) == []


def test_a_uri_without_spark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for uri in ("s3a://lake/out", "file:///tmp/out"):
        assert run(brokerside, "brokerside", ["report", DUMPS[0], "--out", uri, "--engine", "local"]) == 2
        sentence = f"--out {uri} needs Spark, which writes to URIs; leave out --engine local"
        assert capsys.readouterr().err == f"brokerside: {sentence}\n"


@pytest.mark.parametrize("remote", [True, False], ids=["SPARK_REMOTE", "--master"])
def test_a_uri_on_a_connect_server_is_refused_before_anyone_is_asked(
    remote: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No server listens there."""
    master = "sc://127.0.0.1:1"
    if remote:
        monkeypatch.setenv("SPARK_REMOTE", master)
    words = ["--out", "s3a://lake/out", *([] if remote else ["--master", master])]
    assert run(brokerside, "brokerside", ["report", DUMPS[0], *words]) == 2
    sentence = (
        "--out s3a://lake/out: of a Spark Connect session only the server can write there, and the page is made here; "
        "give a folder that both see"
    )
    assert capsys.readouterr().err == f"brokerside: {sentence}\n"


def test_a_table_that_spark_was_interrupted_in_is_ours_to_replace(report: Ran, tmp_path: Path) -> None:
    """Spark removes what is there, and moves files to their places one by one, `_SUCCESS` last."""
    assert report("file:" + str(tmp_path / "out")) == 0
    place = table_path(tmp_path / "out", CLUSTERS)
    (place / "_SUCCESS").unlink()
    (place / "_temporary").mkdir()
    before = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report("file:" + str(tmp_path / "out")) == 0
    assert (place / "_SUCCESS").exists()
    assert json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8")) == before
