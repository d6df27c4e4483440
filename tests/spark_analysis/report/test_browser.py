"""The page in a real browser: it loads without complaint or network, draws, sorts, filters and unfolds."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report
from spark_analysis.report.write import write_page
from tests.spark_analysis.report import samples
from tests.spark_analysis.report.chromium import Chromium, find_chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium on PATH"),
]

CELLS = "[...document.querySelectorAll('#ranking-table tbody tr')].map(row => row.cells[%d].textContent)"
HEADS = "[...document.querySelectorAll('#ranking-table thead th')]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = find_chromium()
    assert program is not None
    with Chromium(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def fleet_url(fleet: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_page(tmp_path_factory.mktemp("fleet-page"), fleet).as_uri()


@pytest.fixture(scope="module")
def dumps_url(dumps: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_page(tmp_path_factory.mktemp("dumps-page"), dumps).as_uri()


@pytest.fixture(scope="module")
def hostile_url(hostile: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_page(tmp_path_factory.mktemp("hostile-page"), hostile).as_uri()


@pytest.fixture(scope="module")
def long_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = samples.empty_rows()
    for number in range(230):
        sample = samples.Sample(cluster_id=number, topic_count=1, partition_count=2, name=f"cluster-{number}")
        samples.add_cluster(rows, sample, rank=number + 1)
    out = samples.write_tables(tmp_path_factory.mktemp("long-page"), rows)
    return write_page(out, load_report(out, samples.FLEET_RUN)).as_uri()


@pytest.fixture(scope="module")
def plan_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A plan for a topic whose name is as long as Kafka allows, on racks whose names are markup."""
    folder = tmp_path_factory.mktemp("plan-page")
    rows = "".join(f"\tTopic: {'t' * 249}\tPartition: {n}\tLeader: 1\tReplicas: 1\tIsr: 1\n" for n in range(6))
    head = f"Topic: {'t' * 249}\tPartitionCount: 6\tReplicationFactor: 1\tConfigs: \n"
    (folder / "prod.txt").write_text(head + rows)
    (folder / "racks.json").write_text(json.dumps({"1": "<script>alert(1)</script>", "2": "\u202eback", "3": "𝛑"}))
    given = str(folder / "prod.txt"), "--racks", str(folder / "racks.json"), "--out", str(folder / "out"), "--add", "2"
    assert run(brokerside, "brokerside", ["plan", "--goal", "add", *given]) == 0
    return (folder / "out" / "plan.html").as_uri()


def test_a_plan_has_no_bar_below_a_narrow_page_and_its_commands_are_lines(browser: Chromium, plan_url: str) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=True)
    try:
        browser.open(plan_url)
        assert browser.run("document.documentElement.scrollWidth") == 400
        assert browser.run("document.querySelector('pre').innerText.split('\\n').length") > 5
        assert browser.run("document.querySelectorAll('script').length") == 0
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("name", ["fleet_url", "dumps_url", "hostile_url", "long_url", "plan_url"])
def test_the_page_loads_without_a_complaint_and_without_network(
    browser: Chromium, request: pytest.FixtureRequest, name: str
) -> None:
    address = request.getfixturevalue(name)
    browser.open(address)
    browser.run("new Promise(done => setTimeout(done, 200))")
    assert browser.of("Log.entryAdded") == []
    assert browser.of("Runtime.consoleAPICalled") == []
    assert browser.of("Runtime.exceptionThrown") == []
    assert browser.of("Page.javascriptDialogOpening") == []
    asked = [event["request"]["url"] for event in browser.of("Network.requestWillBeSent")]
    assert address in asked
    assert [url for url in asked if url != address and not url.startswith("data:")] == []


def test_a_link_unfolds_its_cluster_and_its_drawings_show(browser: Chromium, fleet_url: str) -> None:
    browser.open(fleet_url)
    assert browser.run("document.querySelector('#cluster-3').open") is False
    browser.run("document.querySelector('#ranking-table a[href=\"#cluster-3\"]').click()")
    browser.run("new Promise(done => setTimeout(done, 200))")
    assert browser.run("document.querySelector('#cluster-3').open") is True
    boxes = browser.run(
        "[...document.querySelectorAll('#cluster-3 svg, #cluster-3 svg image')]"
        ".map(one => one.getBoundingClientRect().height)"
    )
    assert len(boxes) >= 1
    assert all(height > 100 for height in boxes)


def test_the_table_sorts_by_click_both_ways(browser: Chromium, fleet_url: str) -> None:
    browser.open(fleet_url)
    column = browser.run(f"{HEADS}.findIndex(head => head.textContent.startsWith('leaders to move'))")
    click = f"{HEADS}[{column}].querySelector('button').click()"
    browser.run(click)
    shares = [share_of(cell) for cell in browser.run(CELLS % column)]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) > 1
    assert browser.run(f"{HEADS}[{column}].getAttribute('aria-sort')") == "descending"
    browser.run(click)
    shares = [share_of(cell) for cell in browser.run(CELLS % column)]
    assert shares == sorted(shares)
    assert browser.run(f"{HEADS}.filter(head => head.getAttribute('aria-sort') !== 'none').length") == 1


def share_of(cell: str) -> float:
    return float(cell.removesuffix(" %").replace("<", ""))


def test_the_filter_keeps_what_matches_and_says_how_much(browser: Chromium, fleet_url: str) -> None:
    browser.open(fleet_url)
    browser.run("document.querySelector('#filter-text').focus()")
    browser.call("Input.insertText", text="FLEET-29")
    assert set(browser.run(CELLS % 1)) == {"fleet-29"}
    assert browser.run("document.querySelector('#ranking-status').textContent") == "Showing 1–2 of 2, filtered from 60"
    browser.run(
        "(select => { select.value = 'striped'; select.dispatchEvent(new Event('input', {bubbles: true})); })"
        "(document.querySelector('#filter-placer'))"
    )
    assert browser.run("document.querySelector('#ranking-status').textContent") == "Showing 1–1 of 1, filtered from 60"


def test_long_tables_are_paged(browser: Chromium, long_url: str) -> None:
    browser.open(long_url)
    assert len(browser.run(CELLS % 0)) == 100
    browser.run("document.querySelector('#page-on').click(); document.querySelector('#page-on').click()")
    assert browser.run(CELLS % 0) == [str(place) for place in range(201, 231)]
    assert browser.run("document.querySelector('#page-on').disabled") is True
    linked = browser.run("document.querySelectorAll('#ranking-table tbody a').length")
    assert linked == 0  # Places above 200 are not shown in full.


def test_what_the_script_prints_is_what_the_page_was_served_with(browser: Chromium, dumps_url: str) -> None:
    browser.open(dumps_url)
    rows = (
        "[...document.querySelectorAll('#ranking-table tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )
    scripted = browser.run(rows)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(dumps_url)
        served = browser.run(rows)
        assert browser.run("document.querySelector('#ranking-controls').hidden") is True
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert served == scripted


def test_other_peoples_strings_stay_text_when_the_script_draws_them(browser: Chromium, hostile_url: str) -> None:
    browser.open(hostile_url)
    assert samples.SCRIPT in browser.run(CELLS % 1)
    assert browser.run("document.querySelectorAll('#ranking-table script, #ranking-table img').length") == 0


@pytest.mark.parametrize("name", ["fleet_url", "dumps_url", "hostile_url"])
def test_a_narrow_page_does_not_scroll_sideways(browser: Chromium, request: pytest.FixtureRequest, name: str) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=False)
    try:
        browser.open(request.getfixturevalue(name))
        assert browser.run("document.documentElement.scrollWidth") <= 360
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Chromium, dumps_url: str, scheme: str) -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    try:
        browser.open(dumps_url)
        colours = {
            name: browser.run(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
            for name in ("page", "raised", "accent-soft", "ink", "quiet", "link", "accent", "best")
        }
        assert (luminance(colours["page"]) > 0.5) == (scheme == "light")
        for text in ("ink", "quiet", "link", "accent", "best"):
            for ground in ("page", "raised", "accent-soft"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])


def luminance(colour: str) -> float:
    """Return WCAG's relative luminance of #rrggbb, 0..1."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
