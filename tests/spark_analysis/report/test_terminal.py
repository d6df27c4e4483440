"""The same in ten lines, and for programs."""

from __future__ import annotations

import io
import json

import attrs
from rich.console import Console

from spark_analysis.report.model import Report
from spark_analysis.report.states import STATES
from spark_analysis.report.terminal import summary_json, terminal_summary


def printed(report: Report, *, color: bool = False) -> str:
    console = Console(file=io.StringIO(), width=140, force_terminal=color, color_system="standard" if color else None)
    console.print(terminal_summary(report))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_fleet_is_summed_up_in_ten_lines(fleet: Report) -> None:
    lines = printed(fleet).splitlines()
    assert len(lines) == 10
    assert lines[0] == "A simulated fleet of 30 clusters, each placed by classic and by striped."
    assert lines[1].endswith("30 rows in = 30 analysed + 0 rejected; 2 lines of other text passed over")
    assert lines[2].startswith("Now: ")
    assert lines[2].endswith("6 states not simulated")
    assert lines[3].startswith("Replicas to move (best 0 %): classic median ")
    assert lines[6] == "First to look at:"


def with_states(report: Report, **counts: int | None) -> Report:
    states = {state.field: None for state in STATES} | counts
    return attrs.evolve(
        report,
        rows=tuple(attrs.evolve(row, facts=attrs.evolve(row.facts, **states)) for row in report.rows),
    )


def test_only_states_that_are_alarms_are_red(dumps: Report) -> None:
    at_min = printed(with_states(dumps, at_min_isr_count=3), color=True).splitlines()[2]
    assert "3 at min-ISR" in at_min
    assert "\x1b[31m" not in at_min
    assert "\x1b[31m" in printed(with_states(dumps, under_min_isr_count=3), color=True).splitlines()[2]


def test_the_summary_of_successive_dumps_is_of_the_last(dumps: Report) -> None:
    lines = printed(dumps).splitlines()
    assert len(lines) <= 10
    assert lines[2] == "Now: 3 on fewer racks than possible (25.0 %), 2 not led by their preferred replica (16.7 %)"
    first, earlier = lines.index("First to look at:"), lines.index("Earlier moments, the worst first:")
    assert lines[first + 1].startswith("  6. 6-restored: ")
    assert lines[earlier - 1].startswith("Since 5-")
    assert lines[earlier + 1] == "  1. 3-region-lost: 6 partitions have no leader"
    assert lines[3] == "Replicas to move (best 0 %): median 5.6 %, worst 5.6 %"


def test_json_tells_moments_and_now_apart(dumps: Report) -> None:
    said = json.loads(summary_json(dumps))
    assert [one["cluster"] for one in said["first_to_look_at"]] == ["6-restored"]
    assert [one["is_now"] for one in said["moments"]] == [False] * 5 + [True]
    assert [one["leaderless_count"] for one in said["moments"]] == [0, 0, 6, 0, 0, 0]
    assert [share["cluster_count"] for share in said["moves_share"]["replicas"]] == [1]


def test_names_reach_the_terminal_as_text_only(hostile: Report) -> None:
    named = attrs.evolve(
        hostile.rows[0],
        facts=attrs.evolve(hostile.rows[0].facts, cluster="[red]x[/red]\x1b]0;own\x07\u202e\n"),
        healthy=False,
    )
    shown = printed(attrs.evolve(hostile, rows=(named,)), color=True)
    assert "[red]x[/red]\\x1b]0;own\\x07\\u202e\\n" in shown
    assert "\x1b]0" not in shown
    assert "\u202e" not in shown


def test_json_says_the_same_and_null_where_nothing_is_known(fleet: Report, dumps: Report) -> None:
    said = json.loads(summary_json(fleet))
    assert said["cluster_count"] == 30
    assert said["rows_in"] == said["rows_analysed"] + said["rows_rejected"]
    assert said["leaderless_count"] is None
    assert said["fewer_racks_count"] == sum(row.facts.fewer_racks_count or 0 for row in fleet.rows)
    assert [entry["placer"] for entry in said["moves_share"]["leaders"]] == ["classic", "striped"]
    assert json.loads(summary_json(dumps))["moves_share"]["bytes"] is None


def test_states_of_a_dump_that_lists_some_partitions_have_no_share(dumps: Report) -> None:
    """As kafka-topics prints it with --under-replicated-partitions: no topic line, so nobody knows of how many."""
    found = with_states(dumps, leaderless_count=1)
    rows = tuple(attrs.evolve(row, facts=attrs.evolve(row.facts, partition_count=None)) for row in found.rows)
    totals, line = printed(attrs.evolve(found, rows=rows)).splitlines()[1:3]
    assert ", partitions not known, " in totals
    assert line == "Now: 1 without a leader; 6 states not in the dump"
