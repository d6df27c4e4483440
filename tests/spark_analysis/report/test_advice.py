"""What to do next, on the page, in the terminal and for programs; and the commands that others' names cannot break."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import attrs
import pytest
from rich.console import Console

from spark_analysis.report.advice import brokers_first, first_plan, plan_in_words
from spark_analysis.report.commands import Commands, commands_of
from spark_analysis.report.html import report_html
from spark_analysis.report.model import Advice, ClusterDetail, GivenInput, Report
from spark_analysis.report.rows import LeastPlan, RestartBatches, WorstOutage
from spark_analysis.report.terminal import summary_json, terminal_summary

BALANCE = LeastPlan(
    cluster_id=5, placer="dump", goal="balance", moved_count=12, moved_count_min=12, leader_change_count=5,
    leader_change_count_min=4, changed_partition_count=14, is_least=True, replica_moves_before=12,
    replica_moves_after=0, leader_moves_before=4, leader_moves_after=0, fewer_racks_count_before=3,
    fewer_racks_count_after=0,
)  # fmt: skip
LEADERS = attrs.evolve(
    BALANCE, goal="leaders", moved_count=0, moved_count_min=0, moved_bytes=0, replica_moves_after=12,
    leader_moves_after=1, fewer_racks_count_after=3,
)  # fmt: skip
RACKS = attrs.evolve(BALANCE, goal="racks", moved_count=3, moved_count_min=3, leader_moves_after=4)
OUTAGE = WorstOutage(
    cluster_id=5, placer="dump", scope="rack", rack="<b>west", leaderless_count=2, leaderless_count_now=0,
    lost_leader_count=9, failover_count=3, failover_share=1 / 3, leader_count_max=7, leader_max_over_mean=1.5,
)  # fmt: skip
RESTARTS = RestartBatches(
    cluster_id=5, placer="dump", batch_count=4, batch_count_min=3, batch_broker_count_max=2, stuck_partition_count=1
)


def advised(report: Report, advice: Advice, *, name: str = "prod", dump: str = "prod.txt") -> Report:
    """Return the report with this advice on its only cluster of the present, and its input as the last of six."""
    last = report.current_rows[0].place
    details = tuple(attrs.evolve(one, advice=advice) if one.row.place == last else one for one in report.details)
    inputs = tuple(GivenInput(name=f"m{number}", dump=f"{number}.txt") for number in range(5))
    mine = GivenInput(name=name, dump=dump, options=("--racks", "r.csv"))
    return attrs.evolve(report, details=details, run=attrs.evolve(report.run, given=(*inputs, mine)))


def detail_of(report: Report) -> ClusterDetail:
    return next(one for one in report.details if one.row.place == report.current_rows[0].place)


def advice_in(report: Report) -> str:
    """What the page says to do next; empty where it says nothing."""
    page = report_html(report)
    _, heading, after = page.partition("<h4>What to do next</h4>")
    return heading and after[: after.index("Measures, each")]


ALL = Advice((BALANCE, LEADERS, RACKS), (OUTAGE,), RESTARTS)


def test_the_page_names_plans_outages_restarts_and_their_commands(dumps: Report) -> None:
    report = advised(dumps, ALL)
    drawn = advice_in(report)
    for text in (
        "12 → 0",
        "&lt;b&gt;west",
        "33.3 %",
        "4 batches of at most 2 brokers (every schedule has at least 3); 1 partition falls under",
        "Plan, racks only: 3 replicas move (no plan moves fewer), 5 leaders change.",
    ):
        assert text in drawn, text
    assert "<b>west" not in drawn
    assert drawn.index("Plan, racks only") < drawn.index("Plan, balance")


def test_a_refused_plan_says_why_and_has_no_command(dumps: Report) -> None:
    refused = LeastPlan(cluster_id=5, placer="dump", goal="balance", refused="none of the 2 brokers is live")
    report = advised(dumps, Advice((refused,)))
    drawn = advice_in(report)
    assert "Balance: there is no plan: none of the 2 brokers is live." in drawn
    assert "--out" not in drawn
    left = attrs.evolve(refused, refused="more than 200,000 partitions are left to the command")
    assert "--out prod-balance" in "".join(
        each["command"] or ""
        for each in json.loads(summary_json(advised(dumps, Advice((left,)))))["what_to_do_next"][0]["plans"]
    )


def test_the_terminal_names_the_first_plan_and_its_whole_command(dumps: Report) -> None:
    file = io.StringIO()
    Console(file=file, width=1000).print(terminal_summary(advised(dumps, ALL, dump=f"{'long-' * 40}.txt")))
    lines = file.getvalue().splitlines()
    (line,) = [line for line in lines if line.startswith("Next, for ")]
    assert "3 replicas move (no plan moves fewer), 5 leaders change: brokerside plan long-" in line
    assert line.endswith("--racks r.csv --goal racks --out prod-racks")
    assert len(lines) <= 10


@pytest.mark.parametrize(
    "name", ["it's; rm -rf ~", "$(id)", 'a b"c', "--version", "`id`", "x&&y", "<script>alert(1)</script>"]
)
def test_names_of_others_stay_one_argument(name: str) -> None:
    commands = Commands(dump=name, options=("--racks", name, "--cluster", name), folder="prod")
    plan = attrs.evolve(BALANCE, excluded_topics=(name,), from_target=True)
    for line in (commands.outage(), commands.roll(), commands.plan(plan), commands.check(plan)):
        assert line is not None
        words = shlex.split(line)
        assert words[0] == "brokerside"
        assert words.count(name) in (3, 4)
        if name.startswith("-"):
            assert words[-2:] == ["--", name]
        else:
            assert words[2] == name


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "\u202egnp.txt"])
def test_a_command_with_characters_that_cannot_be_seen_is_not_shown(dumps: Report, name: str) -> None:
    report = advised(dumps, ALL, dump=name)
    assert "no command is" in advice_in(report)
    said = json.loads(summary_json(report))["what_to_do_next"][0]
    assert said["outage_command"] is said["plans"][0]["command"] is None


def test_folders_are_plain_and_no_two_clusters_share_one(dumps: Report) -> None:
    report = advised(dumps, ALL, name="../../etc/x y")
    found = commands_of(report, detail_of(report).row.facts)
    assert found is not None
    assert found.folder == "etc-x-y"
    assert Path(found.folder).name == found.folder
    twins = advised(dumps, ALL, name="m1")
    other = commands_of(twins, detail_of(twins).row.facts)
    assert other is not None
    assert other.folder == "m1-5"


def test_clusters_of_one_input_are_told_apart_by_name(dumps: Report) -> None:
    """The clusters of two inputs are numbered in turn: 0 and 2 are of the first, 1 is of the second."""
    report = advised(dumps, ALL, name="m1")
    row = report.rows[0]
    facts = attrs.evolve(row.facts, previous_cluster_id=None)
    rows = tuple(attrs.evolve(row, facts=attrs.evolve(facts, cluster_id=number)) for number in range(3))
    report = attrs.evolve(report, rows=rows, run=attrs.evolve(report.run, given=report.run.given[:1] * 2))
    found = [commands_of(report, each.facts) for each in rows]
    added = [each.options[len(report.run.given[0].options) :] for each in found if each is not None]
    assert added == [("--cluster", row.facts.cluster), (), ("--cluster", row.facts.cluster)]


def test_a_plan_to_even_bytes_says_what_it_copies_and_its_command(dumps: Report) -> None:
    plan = attrs.evolve(BALANCE, goal="bytes", moved_bytes=3 << 30, moved_bytes_min=2 << 30, moved_count_min=None)
    assert plan_in_words(plan) == "3 GiB in 12 replicas move (at least 2 GiB must), 5 leaders change"
    report = advised(dumps, Advice((plan,)))
    (said,) = json.loads(summary_json(report))["what_to_do_next"]
    assert said["plans"][0]["command"] == (
        "brokerside plan prod.txt --racks r.csv --goal balance --by bytes --tolerance 5 --out prod-bytes"
    )


@pytest.mark.parametrize(
    ("facts", "refused", "said"),
    [
        ({"leaderless_count": 3}, None, "3 partitions without a leader: bring their brokers back first"),
        ({"under_replicated_count": 2}, "bring these brokers back", "bring these brokers back"),
        ({"under_replicated_count": 0}, "more than so many are left to the command", None),
        ({"under_replicated_count": 2}, None, None),
    ],
)
def test_no_plan_comes_first_while_brokers_have_to_come_back(
    dumps: Report, facts: dict[str, int], refused: str | None, said: str | None
) -> None:
    restarts = RestartBatches(cluster_id=5, placer="dump", refused=refused)
    detail = detail_of(advised(dumps, Advice((BALANCE,), (), restarts)))
    whole = {"leaderless_count": 0, "under_replicated_count": 0} | facts
    detail = attrs.evolve(detail, row=attrs.evolve(detail.row, facts=attrs.evolve(detail.row.facts, **whole)))
    assert [step.words for step in brokers_first(detail)] == ([] if said is None else [said])
    assert (first_plan(detail, 0.0) is None) == (said is not None)
