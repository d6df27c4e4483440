"""The picture of a run and its page: what stands in them, how large they get, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import attrs
import pytest

from broker.cli import run as run_command
from broker.drawing.time_axis import TimeAxis
from broker.units import DurationMs, TimeMs
from replication.checkers import Finding
from replication.cli.simulate import simulate
from replication.simulation.chart import LEFT, ROW_COUNT_MAX, WIDTH, rows_of, to_html, to_svg
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind, Options, quiet
from replication.simulation.run import Outcome, run

SVG = "{http://www.w3.org/2000/svg}"
PLAN = (
    Fault(TimeMs(5_000), FaultKind.KILL, 1, DurationMs(9_000)),
    Fault(TimeMs(6_000), FaultKind.HOLD, 0, DurationMs(500)),
    Fault(TimeMs(7_000), FaultKind.CUT_PEERS, 2, DurationMs(2_000)),
)


def small(partitions: int = 2, duration_ms: int = 20_000) -> Options:
    return attrs.evolve(quiet(1, DurationMs(duration_ms)), partitions=partitions)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return run(small(), PLAN)


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_every_partition_and_every_broker_has_a_row_and_every_broker_a_colour(outcome: Outcome) -> None:
    shown = texts(to_svg(outcome))
    assert shown[0].startswith("seed 1, quiet, ")
    assert [text for text in shown if text.startswith("partition ")] == ["partition 0", "partition 1"]
    assert [shown.count(f"broker {broker}") for broker in range(3)] == [1, 1, 1]
    assert [text for text in shown if text.startswith("faults, ")] == [
        *(f"faults, broker {broker}" for broker in range(3)),
        "faults, cluster",
    ]


def test_each_fault_has_a_mark_as_long_as_it_lasts(outcome: Outcome) -> None:
    found = [each for each in ElementTree.fromstring(to_svg(outcome)).iter() if each.get("class") == "fault"]
    assert len(found) == len(PLAN)
    axis = TimeAxis(int(outcome.simulated_ms), left=LEFT, width=WIDTH)
    assert float(found[0].get("x", "")) == axis.x(5_000)
    width = float(found[0].get("width", ""))
    assert width == pytest.approx(axis.x(14_000) - axis.x(5_000), abs=0.11)
    assert "".join(found[0].itertext()).startswith("kill: the process dies")


def test_a_time_with_too_few_in_sync_has_a_stripe() -> None:
    plan = tuple(Fault(TimeMs(5_000), FaultKind.KILL, broker, DurationMs(15_000)) for broker in (1, 2))
    svg = to_svg(run(small(1, 30_000), plan))
    assert svg.count('class="low"') > 1  # The legend has one.
    quiet_svg = to_svg(run(small(1), ()))
    assert quiet_svg.count('class="low"') == 1
    assert "faults, cluster" not in texts(quiet_svg)


def test_a_fault_of_a_rack_stands_at_each_of_its_brokers_and_one_of_nobody_in_a_row_of_its_own() -> None:
    at = TimeMs(1)
    assert rows_of(Fault(at, FaultKind.RACK_OUTAGE, 1), brokers=5, racks=2) == (1, 3)
    assert rows_of(Fault(at, FaultKind.PAUSE, 3), brokers=5, racks=2) == (3,)
    assert rows_of(Fault(at, FaultKind.REASSIGN, 0), brokers=5, racks=2) == (5,)


def test_what_is_broken_is_a_line_across_and_the_first_thing_shown(outcome: Outcome) -> None:
    broken = attrs.evolve(outcome, findings=(Finding("I7", TimeMs(9_000), 0, "<gone>"),))
    svg = to_svg(broken)
    assert texts(svg)[0].endswith("BROKEN: I7")
    assert texts(svg)[-1] == "I7"
    page = to_html(broken, "again", [])
    assert "I7 broken at 9000 ms, partition 0: &lt;gone&gt;" in page
    assert page.index("I7 broken at") < page.index("<figure>")


def test_very_many_partitions_are_left_out(outcome: Outcome) -> None:
    most = attrs.evolve(outcome, options=attrs.evolve(outcome.options, partitions=ROW_COUNT_MAX + 30))
    shown = texts(to_svg(most))
    assert sum(text.startswith("partition ") for text in shown) == ROW_COUNT_MAX
    assert "30 partitions that changed less are not shown" in shown


def test_the_page_brings_everything_along_and_lists_every_partition_and_every_fault(outcome: Outcome) -> None:
    page = to_html(outcome, "brokerside simulate <x>", ["one & two"])
    assert page == to_html(run(small(), PLAN), "brokerside simulate <x>", ["one & two"])
    assert page.count("<tr") == page.count("</tr>") == 2 + len(PLAN) + 2
    assert "<code>brokerside simulate &lt;x&gt;</code>" in page
    assert "one &amp; two" in page
    assert not re.search(r"<script|href=|src=|url\(|@import", page)


def test_a_page_is_written_by_its_ending_and_other_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "run.html"
    assert run_command(simulate, "simulate", ["--quiet", "--minutes", "0.1", "--chart", str(page)]) == 0
    assert "brokerside simulate --quiet --minutes 0.1 --seed 0" in page.read_text(encoding="utf-8")
    capsys.readouterr()
    assert run_command(simulate, "simulate", ["--chart", "run.png\x1b"]) == 2
    assert capsys.readouterr().err == "simulate: --chart 'run.png\\x1b': a chart is written as .svg or .html\n"
    assert run_command(simulate, "simulate", ["--seeds", "3", "--chart", str(page)]) == 2
    assert capsys.readouterr().err == "simulate: --chart is a picture of one run; --seeds asks for 3\n"
