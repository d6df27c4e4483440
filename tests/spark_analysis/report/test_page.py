"""The page: answers in the reader's order, traceable, self-contained, and the same bytes for the same input."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest

from placement.balance.definitions import DEFINITIONS
from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.markup import content_hash
from spark_analysis.report.model import Report
from spark_analysis.report.states import STATES
from tests.spark_analysis.report import samples

VOID = {"br", "col", "input", "link", "meta"}


class Outline(HTMLParser):
    """What the tests ask of a page: its ids, links, tags, tables and text, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.tags.append((tag, held))
        if held.get("id"):
            self.ids.append(str(held["id"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, attribute: str) -> list[str]:
        return [str(held[attribute]) for _, held in self.tags if attribute in held]


PAGES = ("fleet_page", "dumps_page", "hostile_page")


@pytest.fixture(params=PAGES)
def any_page(request: pytest.FixtureRequest) -> str:
    page: str = request.getfixturevalue(request.param)
    return page


def test_sections_answer_in_the_readers_order(dumps_page: str) -> None:
    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", dumps_page) == [
        "Which clusters first, and what to do?",
        "What got worse since the last time?",
        "Is anything wrong now?",
        "How far from the best possible?",
        "One cluster at a time",
        "What was read",
        "Definitions",
    ]


def test_every_tag_is_closed_and_every_id_is_its_own(any_page: str) -> None:
    ids = Outline(any_page).ids
    assert len(ids) == len(set(ids))


def test_every_link_leads_to_a_place_on_the_page(any_page: str) -> None:
    outline = Outline(any_page)
    links = [held["href"] for tag, held in outline.tags if tag == "a"]
    assert links
    assert [link for link in links if str(link)[1:] not in outline.ids or not str(link).startswith("#")] == []


def test_nothing_is_asked_of_any_network(any_page: str) -> None:
    outline = Outline(any_page)
    pictures = [held["src"] for tag, held in outline.tags if tag == "img"]
    loaded = [*outline.values("src"), *outline.values("srcset"), *outline.values("data"), *outline.values("action")]
    assert [each for each in loaded if each not in pictures] == []
    pictures += [held["href"] for tag, held in outline.tags if tag in ("image", "link")]
    assert all(str(picture).startswith("data:") for picture in pictures)
    ours = re.sub(r"<(script|style)\b.*?</\1>", "", any_page, flags=re.DOTALL)
    assert "://" not in ours.replace("&lt;", "")
    style = re.search(r"<style>(.*?)</style>", any_page, flags=re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_the_policy_allows_only_this_pages_style_and_script(any_page: str) -> None:
    style = re.search(r"<style>(.*?)</style>", any_page, flags=re.DOTALL)
    script = re.search(r"<script>(.*?)</script>", any_page, flags=re.DOTALL)
    assert style is not None
    assert script is not None
    policies = [held["content"] for _, held in Outline(any_page).tags if "http-equiv" in held]
    assert policies == [
        f"default-src 'none'; style-src {content_hash(style[1])}; script-src {content_hash(script[1])}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    ]
    assert Outline(any_page).values("style") == []


def test_other_peoples_strings_never_become_markup(hostile_page: str) -> None:
    outline = Outline(hostile_page)
    assert sum(1 for tag, _ in outline.tags if tag == "script") == 2  # The data block and our script.
    assert not any(tag == "img" for tag, _ in outline.tags)
    assert [held for _, held in outline.tags if any(name.startswith("on") for name in held)] == []
    assert samples.SCRIPT in "".join(outline.texts)
    assert "\x1b" not in hostile_page
    assert "\u202e" not in hostile_page
    assert "\\u202e[bold]b" in hostile_page


def test_the_page_says_how_to_make_it_again(fleet_page: str) -> None:
    run = samples.FLEET_RUN
    assert run.command in fleet_page
    assert "brokerside 0.1.0" in fleet_page
    assert "clusters = 500" in fleet_page
    assert "<dt>Seed</dt><dd><code>42</code></dd>" in fleet_page


def tile(page: str, title: str) -> str:
    tiles = [match[0] for match in re.finditer(r'<li class="tile.*?</li>', page, flags=re.DOTALL)]
    found = [drawn for drawn in tiles if f'<span class="title">{title}</span>' in drawn]
    assert len(found) == 1
    return found[0]


def test_a_tile_above_zero_counts_and_links_to_its_list(fleet_page: str, fleet: Report) -> None:
    found = sum(row.facts.fewer_racks_count or 0 for row in fleet.rows)
    drawn = tile(fleet_page, "partitions on fewer racks than possible")
    assert found > 0
    assert f"<b>{found}</b>" in drawn
    assert 'href="#list-fewer_racks"' in drawn
    assert f"classic {found} · striped 0" in drawn


def test_now_is_the_last_dump_and_every_dump_has_its_line(dumps_page: str) -> None:
    changed = dumps_page[dumps_page.index('id="changes"') : dumps_page.index('id="now"')]
    assert "<b>6-restored since 5-" in changed
    by_moment = changed[changed.index("moment by moment") :]
    assert [name for name in samples.DUMP_NAMES if f">{name}</a>" in by_moment] == list(samples.DUMP_NAMES)
    assert by_moment.count("<td>earlier</td>") == 5
    assert by_moment.count("<td>now</td>") == 1


def test_broken_rules_come_before_states_and_states_by_urgency(tmp_path: Path) -> None:
    rows = samples.empty_rows()
    samples.add_cluster(rows, samples.Sample(cluster_id=0), rank=1)
    for name in ("at-min-isr", "distinct-brokers", "under-min-isr", "leaderless"):
        rows["violations"].append(
            {"cluster_id": 0, "placer": "classic", "constraint": name, "topic": "t", "partition": 0, "brokers": [1],
             "racks": ["a"], "detail": "d"}
        )  # fmt: skip
    page = report_html(load_report(samples.write_tables(tmp_path, rows), samples.FLEET_RUN))
    said = re.findall(r"<summary><span>([a-z-]+): 1</span>", page)
    assert said == ["distinct-brokers", "leaderless", "under-min-isr", "at-min-isr"]


def test_every_measure_and_state_is_defined_on_the_page(fleet_page: str) -> None:
    ids = Outline(fleet_page).ids
    assert [name for name in (definition.name for definition in DEFINITIONS) if f"def-{name}" not in ids] == []
    assert [state.key for state in STATES if f"def-{state.key}" not in ids] == []


def test_every_table_has_a_caption_and_headers_with_scope(any_page: str) -> None:
    assert any_page.count("<table") == any_page.count("<caption")
    assert not re.search(r"<th(?![^>]*scope=)[ >]", any_page)


def test_one_broker_no_racks_and_nothing_known_make_a_page(tmp_path: Path) -> None:
    rows = samples.empty_rows()
    alone = samples.Sample(cluster_id=0, broker_count=1, racks=(), factor=1, topic_count=1, shape=None)
    samples.add_cluster(rows, alone, rank=1)
    nothing = samples.Sample(cluster_id=1, broker_count=1, racks=(), factor=1, topic_count=0, shape=None)
    samples.add_cluster(rows, nothing, rank=2, topic_count=None, partition_count=None, replica_count=None)
    for name in ("measures", "brokers", "racks", "topics"):
        rows[name] = [row for row in rows[name] if row["cluster_id"] == 0]
    page = report_html(load_report(samples.write_tables(tmp_path, rows), samples.DUMPS_RUN))
    Outline(page)
    assert "Nothing to measure" in page
    assert "racks not known" in page


@pytest.mark.deep
def test_the_bytes_do_not_depend_on_the_process(fleet_out: Path, fleet_page: str) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.spark_analysis.report import samples\n"
        "from spark_analysis.report.html import report_html; from spark_analysis.report.load import load_report\n"
        "sys.stdout.buffer.write(report_html(load_report(Path(sys.argv[1]), samples.FLEET_RUN)).encode())\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "PYTHONPATH": os.getcwd()}
    made = subprocess.run(
        [sys.executable, "-c", code, str(fleet_out)], check=True, capture_output=True, env=environment
    )
    assert made.stdout.decode() == fleet_page


def test_topics_are_held_against_what_they_can_reach(dumps: Report) -> None:
    """A topic at its best has no accent though its brokers differ; a lower bound of moves is marked as one."""
    first = next(detail for detail in dumps.details if detail.topics.rows)
    topic = first.topics.rows[0]
    best = attrs.evolve(
        topic, topic="best", replica_count=18, partition_count=6, replica_max=6, replica_best_max=6, replica_moves=0,
        replica_moves_exact=True, leader_max=None, leader_best_max=None, leader_moves=None, leader_moves_exact=None,
    )  # fmt: skip
    worse = attrs.evolve(
        best, topic="worse", replica_max=7, replica_moves=2, replica_moves_exact=False, leader_max=3, leader_best_max=2,
        leader_moves=1, leader_moves_exact=True,
    )  # fmt: skip
    shown = attrs.evolve(first, topics=attrs.evolve(first.topics, rows=(best, worse), count=2))
    page = report_html(attrs.evolve(dumps, details=(shown,)))
    rows = {name: page[page.index(f">{name}</th>") :].split("</tr>")[0] for name in ("best", "worse")}
    text = {name: re.sub(r"<[^>]*>", "|", row) for name, row in rows.items()}
    assert "6| (6)|" in text["best"]
    assert "7| (6)|" in text["worse"]
    assert "|≥ 2|" in text["worse"]
    assert "3| (2)|" in text["worse"]
    assert "alert" not in rows["best"]
    assert rows["worse"].count("alert") == 2
    assert "equal shares over all brokers" not in page
