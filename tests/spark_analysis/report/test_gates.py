"""Gates for scripts, and the files for programs beside the page."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from broker.errors import UsageError
from broker.known import Known
from broker.wholeness import FILTERED
from spark_analysis.report.gates import GATES, failures, gates_of
from spark_analysis.report.model import Report
from spark_analysis.report.write import prometheus_text, write_for_programs


def with_facts(report: Report, **values: object) -> Report:
    """The report with these facts in its first current cluster."""
    first = report.current_rows[0]
    changed = attrs.evolve(first, facts=attrs.evolve(first.facts, **values))
    return attrs.evolve(report, rows=tuple(changed if row is first else row for row in report.rows))


def test_every_state_and_unevenness_are_gates() -> None:
    assert GATES == (
        "leaderless", "sole-copy", "under-min-isr", "at-min-isr", "under-replicated", "fewer-racks",
        "not-preferred-leader", "uneven",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", " , ", "leaderless,dead"])
def test_a_gate_of_no_known_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--fail-on is .*; allowed are leaderless, sole-copy, under-min-isr"):
        gates_of(text)


def test_a_cluster_fails_the_gate_of_a_state_it_is_in_and_of_one_the_input_does_not_show(dumps: Report) -> None:
    cluster = dumps.current_rows[0].facts.cluster
    wrong = with_facts(dumps, leaderless_count=2, under_min_isr_count=None, at_min_isr_count=0)
    found = failures(wrong, ("leaderless", "under-min-isr", "at-min-isr"), tolerance=0)
    assert [each for each in found if each.startswith(f"{cluster}: ")] == [
        f"{cluster}: 2 partitions have no leader",
        f"{cluster}: the input does not show which partitions are under min-ISR",
    ]
    assert failures(with_facts(dumps, leaderless_count=0), (), tolerance=0) == ()


@pytest.mark.parametrize(("partial", "fails"), [("1 of 3 rows could not be read (x)", True), (FILTERED, False)])
def test_lost_rows_fail_every_gate_and_what_a_filter_leaves_out_does_not(
    partial: str, fails: bool, dumps: Report
) -> None:
    first = dumps.current_rows[0].facts
    known = Known(cluster=first.cluster, partial=partial, down=(), min_insync_replicas={}, sizes={})
    found = failures(with_facts(dumps, known=known.as_text()), ("leaderless", "uneven"), tolerance=1)
    assert (f"{first.cluster}: not the whole cluster: {partial}" in found) is fails


def test_unevenness_fails_above_the_tolerance_and_not_at_it(fleet: Report) -> None:
    spreads = [row.over_brokers.replicas for row in fleet.current_rows]
    worst = max(spread.moves_share or 0.0 for spread in spreads if spread is not None)
    assert worst > 0
    assert any("of replicas have to move" in each for each in failures(fleet, ("uneven",), tolerance=worst / 2))
    assert not [each for each in failures(fleet, ("uneven",), tolerance=worst) if "of replicas have" in each]


def test_only_the_last_moment_is_judged_and_written(dumps: Report) -> None:
    past = {row.facts.cluster for row in dumps.rows} - {row.facts.cluster for row in dumps.current_rows}
    assert past
    judged = " ".join(failures(dumps, GATES, tolerance=0)) + prometheus_text(dumps)
    assert not [name for name in past if name in judged]


def test_prometheus_text_has_a_line_for_what_is_known_and_escapes_names(dumps: Report) -> None:
    text = prometheus_text(with_facts(dumps, cluster='a"b\\c\nd', leaderless_count=2, size_bytes=None))
    lines = text.splitlines()
    labels = '{cluster="a\\"b\\\\c\\nd",placer="dump"'
    assert f'brokerside_partitions_in_state{labels},state="leaderless"}} 2' in lines
    assert not [line for line in lines if line.startswith(f"brokerside_size_bytes{labels}")]
    for name in {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}:
        assert lines.count(f"# TYPE {name} gauge") == 1
    assert text.endswith("\n")


def test_both_files_stand_beside_the_page(dumps: Report, tmp_path: Path) -> None:
    write_for_programs(tmp_path, dumps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "report.prom"]
    assert json.loads((tmp_path / "report.json").read_text())["kind"] == "dumps"
    assert (tmp_path / "report.prom").read_text() == prometheus_text(dumps)
