"""The library returns the tables that the command writes, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

from broker.cli import run
from broker.errors import InputError, UsageError
from spark_analysis import kernels
from spark_analysis.answers.registry import asked_of
from spark_analysis.cli.commands import brokerside
from spark_analysis.report.in_process import report_tables
from spark_analysis.tables.schemas import TABLES
from spark_analysis.tables.write import read_table
from tests.placement.formats.test_group_tables import printed
from tests.spark_analysis.answers.test_given_groups import dump

REAL_DATA = Path(__file__).parents[2] / "real_data"
DUMPS = [str(path) for path in sorted((REAL_DATA / "multiregion").glob("?-*.txt"))[:3]]
RACKS = str(REAL_DATA / "multiregion-racks.csv")


@pytest.mark.parametrize("moments", [None, False])
def test_the_tables_are_those_of_the_command(tmp_path: Path, moments: bool | None) -> None:
    found = report_tables(DUMPS, racks=RACKS, min_isr=2, moments=moments)
    more = [] if moments is None else ["--separate"]
    words = ["report", *DUMPS, "--racks", RACKS, "--min-isr", "2", *more, "--quiet", "--out", str(tmp_path)]
    assert run(brokerside, "brokerside", words) == 0
    assert list(found) == [table.name for table in TABLES]
    for table in TABLES:
        assert found[table.name].equals(read_table(tmp_path, table)), table.name
    assert (found["changes"].num_rows > 0) is (moments is None)


def test_answers_about_given_groups_are_those_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    members, zones = printed("members-verbose"), "b-1,east\nn-1,east\nb-2,west\nn-2,west\n"
    for name, text in (("prod.txt", dump()), ("stage.txt", dump()), ("members.txt", members), ("zones.csv", zones)):
        Path(name).write_text(text)
    found = report_tables(
        ["prod.txt", "stage.txt"], racks=RACKS, ask=["consumers", "traffic"], assume=["price_per_gib=2"],
        groups=["prod=members.txt"], group_zones="zones.csv",
    )  # fmt: skip
    asking = ["--ask", "consumers", "--ask", "traffic", "--assume", "price_per_gib=2"]
    words = ["report", "prod.txt", "stage.txt", *asking, "--quiet", "--out", "out"]
    given = ["--groups", "prod=members.txt", "--group-zones", "zones.csv", "--racks", RACKS]
    assert run(brokerside, "brokerside", [*words, *given]) == 0
    answers = [one.question.run_table for one in asked_of(("consumers", "traffic"), ())]
    assert list(found) == [table.name for table in (*TABLES, *answers)]
    for table in (*TABLES, *answers):
        assert found[table.name].equals(read_table(Path("out"), table)), table.name
    answered = found["consumers"].filter(pc.is_null(found["consumers"]["fault"]))
    assert set(answered["cluster_id"].to_pylist()) == {0}  # Stage has no groups.


@pytest.mark.parametrize("moments", [None, False])
def test_clusters_advised_together_have_the_rows_that_each_has_alone(
    moments: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = report_tables(DUMPS, racks=RACKS, moments=moments, ask=["movement"])
    monkeypatch.setattr(kernels, "WAITING_PARTITION_COUNT_MAX", 1)
    alone = report_tables(DUMPS, racks=RACKS, moments=moments, ask=["movement"])
    assert together["plans"].num_rows >= (2 if moments is None else 6)
    assert len(set(together["restarts"]["cluster_id"].to_pylist())) == (1 if moments is None else len(DUMPS))
    for name, rows in alone.items():
        assert together[name].equals(rows), name


@pytest.mark.deep
def test_nothing_is_left_on_disk_and_spark_is_not_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from spark_analysis import report_tables\n"
        "assert report_tables(sys.argv[1:])['clusters'].to_pandas()['partition_count'].tolist() == [7]\n"
        "sys.exit('pyspark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"prod={DUMPS[0]}"], check=False, capture_output=True, text=True,
        env={"TMPDIR": str(tmp_path), "PYTHONPATH": str(REAL_DATA.parents[1])},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_zones_and_racks_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        report_tables(DUMPS, group_zones="zones.csv")
    assert str(caught.value) == "group_zones has no effect without groups; give both, or neither"
    with pytest.raises(InputError) as caught:
        report_tables(DUMPS, racks=str(tmp_path / "none.csv"))
    assert str(caught.value) == f"{tmp_path}/none.csv: cannot be read: no such file or directory"


@pytest.mark.parametrize(
    ("dumps", "error", "sentence"),
    [
        ([], UsageError, "dumps is []; allowed is a list of one path or more"),
        ("prod.txt", UsageError, "dumps is 'prod.txt'; allowed is a list of one path or more"),
        (["none.txt"], InputError, "none.txt: cannot be read: no such file or directory"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(
    dumps: list[str], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        report_tables(dumps)
    assert str(caught.value) == sentence
