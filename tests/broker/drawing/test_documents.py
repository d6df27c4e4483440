"""Documents stand by themselves: well-formed, escaped, and without anything from outside."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.drawing import svg
from broker.drawing.element import Markup, lines, node, tag, visible
from broker.drawing.figure import figure, line, text
from broker.drawing.page import offline_page, table
from broker.drawing.scale import clipped

SVG = "{http://www.w3.org/2000/svg}"


@given(st.text())
def test_any_title_and_text_of_a_document_read_back_as_text(words: str) -> None:
    drawn = svg.document("run", words, (10, 20.5), svg.style("run", "page"), [node("text", words, x=1)])
    root = ElementTree.fromstring(drawn)
    assert root.get("aria-label") == visible(words)
    assert root.get("viewBox") == "0 0 10 20.5"
    assert next(element.text or "" for element in root if element.tag != f"{SVG}style") == visible(words)
    assert (root[-1].text or "") == visible(words)
    assert not re.search(r"url\(|@import|<script", svg.style("run", "page", "ink"))


def test_a_document_has_a_width_only_when_it_is_fixed() -> None:
    assert ElementTree.fromstring(svg.document("a", "", (10, 20), "", [])).get("width") is None
    assert ElementTree.fromstring(svg.document("a", "", (10, 20), "", [], fixed=True)).get("width") == "10"


def test_an_element_of_a_document_is_closed_in_its_own_tag_when_empty() -> None:
    assert node("path", d="M0 0").text == '<path d="M0 0"/>'
    assert node("text", "it's <b>", x=1).text == '<text x="1">it\'s &lt;b&gt;</text>'
    assert node("g", node("rect"), None).text == "<g><rect/></g>"


def test_parts_stand_on_lines_of_their_own() -> None:
    assert lines("<", tag("br"), "").text == "&lt;\n<br>\n"


class Tags(HTMLParser):
    """Notes which tags are open, and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_is_whole_and_escapes_what_it_is_given() -> None:
    page = offline_page("<title>", tag("p", "a & b"), *table(("<one>", "two"), [("&", "<x>")], texts=(0,)))
    parser = Tags()
    parser.feed(page)
    assert parser.open == []
    assert {"<title>", "a & b", "<one>", "&", "<x>"} <= set(parser.texts)
    assert page.startswith('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n')
    assert page.endswith("</body>\n</html>\n")
    assert '<th class="t">&lt;one&gt;</th><th>two</th>' in page
    assert not re.search(r"<script|href=|src=|url\(|@import", page)


def test_a_figure_is_announced_by_its_title_and_description() -> None:
    drawn = figure("f", "Loads", "from 1 to 2", 40, text(1, 2, "<", anchor="end"), line(0, 0, 1.25, 1, "axis")).text
    assert 'viewBox="0 0 760 40" role="img" aria-labelledby="f-t" aria-describedby="f-d"' in drawn
    assert '<title id="f-t">Loads</title><desc id="f-d">from 1 to 2</desc>' in drawn
    assert '<text x="1" y="2" text-anchor="end">&lt;</text><path d="M0 0L1.2 1" class="axis"></path>' in drawn


@pytest.mark.parametrize(
    ("name", "length_max", "shown"), [("orders", 6, "orders"), ("orders", 5, "orde…"), ("", 3, "")]
)
def test_a_long_label_is_cut(name: str, length_max: int, shown: str) -> None:
    assert clipped(name, length_max) == shown


def test_markup_is_not_escaped_again() -> None:
    assert tag("p", Markup("<b></b>")).text == "<p><b></b></p>"
