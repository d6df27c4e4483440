"""Questions of `--ask`: their tables, what is shown, and what is refused."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import attrs
import pyarrow as pa
import pytest

from broker.cluster import ClusterView
from broker.errors import UsageError
from spark_analysis.answers.question import Assumption, Question
from spark_analysis.answers.registry import QUESTIONS, asked_of, load_question
from spark_analysis.engines import LocalEngine
from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.views import simulated_view
from spark_analysis.jobs import analyse_dumps, analyse_fleet
from spark_analysis.report import RunInfo, load_report, report_html, summary_json
from spark_analysis.report.answers import answer_lines
from spark_analysis.session.progress import progress
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables.columns import KEY
from spark_analysis.tables.place import table_path
from spark_analysis.tables.write import read_table
from tests.architecture.house import ROOT
from tests.architecture.options import commands
from tests.spark_analysis.fleet.test_fleet import recipe

DUMP = ROOT / "tests" / "real_data" / "multiregion" / "1-baseline.txt"
QUIET = functools.partial(progress, quiet=True)
COMMANDS = {command.name: command for command in commands()}
INFO = RunInfo(kind="fleet", title="t", command="c", version="v")


def views(number: int) -> list[tuple[int, str, ClusterView]]:
    fleet = Fleet.of(recipe(number))
    return [
        (cluster.number, placer, simulated_view(cluster, place_cluster(cluster, placer, seed=fleet.recipe.seed), "r"))
        for cluster in make_clusters(fleet, range(fleet.recipe.cluster_count))
        for placer in cluster.shape.placers
    ]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_name_of_its_table_and_a_table_of_clusters(name: str) -> None:
    question = load_question(name)
    assert question.table.name == name
    assert question.table.columns[: len(KEY)] == KEY
    for one in question.assumptions:
        assert one.low <= one.default <= one.high
        assert one.source


@pytest.mark.deep  # Draws of outages and years of losses, at size.
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_fleet_answers_each_question_for_each_placement(name: str, tmp_path: Path) -> None:
    asked = asked_of((name,), ())
    analyse_fleet(LocalEngine(), recipe(5), tmp_path, progress=QUIET, asked=asked)
    rows = read_table(tmp_path, asked[0].question.run_table)
    expected = [
        {"cluster_id": number, "placer": placer, **row}
        for number, placer, view in views(5)
        for row in asked[0].question.rows(view, asked[0].values).to_pylist()
    ]
    assert rows.to_pylist() == expected
    assert rows["fault"].null_count == rows.num_rows
    report = load_report(tmp_path, attrs.evolve(INFO, asked=asked))
    (answered,) = report.answers
    assert answered.fault_count == 0
    assert answered.shown.tables[0].rows
    page = report_html(report)
    assert f'<section id="{name}"' in page
    assert f'<a href="#{name}">' in page
    found = json.loads(summary_json(report))["answers"][name]
    first = answered.shown.tables[0]
    assert [tuple(row.values()) for row in found[first.name]] == [tuple(row) for row in first.rows]
    assert answer_lines(report.answers)[1] == asked[0].question.title


def test_a_run_removes_the_answers_of_the_run_before(tmp_path: Path) -> None:
    asked = asked_of(("durability",), ())
    analyse_dumps(LocalEngine(), [DumpInput(str(DUMP))], None, tmp_path, progress=QUIET, asked=asked)
    assert table_path(tmp_path, asked[0].question.run_table).is_dir()
    analyse_dumps(LocalEngine(), [DumpInput(str(DUMP))], None, tmp_path, progress=QUIET, overwrite=True)
    assert not table_path(tmp_path, asked[0].question.run_table).exists()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "tables" / "durability"
    mine.mkdir(parents=True)
    (mine / "note.txt").write_text("mine", encoding="utf-8")
    analyse_dumps(LocalEngine(), [DumpInput(str(DUMP))], None, tmp_path, progress=QUIET)
    assert (mine / "note.txt").read_text(encoding="utf-8") == "mine"


def _refuse(view: ClusterView, values: object) -> pa.Table:
    raise UsageError(f"cluster {view.name!r} is refused")


def test_a_cluster_without_an_answer_is_a_row_with_a_fault() -> None:
    known = load_question("durability")
    question = Question(table=known.table, title="?", answer=_refuse, show=known.show)
    _, _, view = views(1)[0]
    (row,) = question.rows(view, {}).to_pylist()
    assert row.pop("fault") == "cluster 'cluster-000000' is refused"
    assert set(row.values()) == {None}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--assume", "x=1"), "--assume has no effect without --ask; give both, or neither"),
        (("--ask", "durability", "--assume", "x"), "--assume x: allowed is NAME=VALUE"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(given: tuple[str, ...], sentence: str) -> None:
    ran = COMMANDS["report"].run(*given)
    assert (ran.status, ran.sentence) == (2, f"brokerside: {sentence}")


@pytest.mark.parametrize("text", ["x", "nan", "inf", "-1", "11", "1e309", "1 year", "10%", ""])
def test_an_assumption_is_a_number_within_its_limits(text: str) -> None:
    one = Assumption("n", 1, "A number", "things", low=0, high=10)
    with pytest.raises(UsageError) as caught:
        one.checked(text)
    assert str(caught.value) == f"--assume n={text}: allowed is a number from 0 to 10, in things"


@pytest.mark.parametrize(
    ("question", "given", "allowed"),
    [
        ("availability", "seed=1.5", "a whole number from 0 to 9,007,199,254,740,992"),
        ("availability", "draws=100.5", "a whole number from 64 to 1,048,576, in draws"),
        ("movement", "joining=1.5", "a whole number from 1 to 1,000, in brokers"),
        ("consumers", "members=2.5", "a whole number from 1 to 10,000, in members"),
        ("traffic", "retention_days=inf", "a number from 0.01, in days"),
        ("traffic", "price_per_gib=-1", "a number from 0 to 1,000,000, in USD"),
    ],
)
def test_an_assumption_that_counts_is_whole_and_its_limits_are_readable(
    question: str, given: str, allowed: str
) -> None:
    with pytest.raises(UsageError) as caught:
        asked_of((question,), (given,))
    assert str(caught.value) == f"--assume {given}: allowed is {allowed}"


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("striped,,classic", "--placers 'striped,,classic': allowed is a list of names with commas between them"),
        ("fastest", "placer 'fastest' is not installed; there are classic, copyset, least-loaded, striped"),
    ],
)
def test_placers_that_there_are_not_are_one_sentence(names: str, sentence: str) -> None:
    ran = COMMANDS["fleet"].run("demo", "--placers", names)
    assert (ran.status, ran.sentence) == (2, f"brokerside: {sentence}")


def test_losses_of_no_years_are_not_known() -> None:
    question = load_question("durability")
    _, _, view = views(4)[-1]
    rows = question.rows(view, question.values({"years": 0})).to_pylist()
    assert rows
    assert {(row["losses_per_year_independent"], row["losses_per_year_power_cut"]) for row in rows} == {(None, None)}
    assert all(row["losses_per_year_closed_form"] > 0 for row in rows)
