"""Pictures and pages: text is escaped, documents stand by themselves, colours can be read, axes have round ends."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.drawing import svg
from broker.drawing.element import Markup, asset, content_hash, escape, json_data, node, tag, visible
from broker.drawing.figure import figure, line, text
from broker.drawing.palette import DARK, LIGHT, PRINT, Theme, filled, themed
from broker.drawing.scale import clipped, nice_axis, number
from tests.architecture.house import ROOT, modules

COLOUR = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![\w-])")


class Reader(HTMLParser):
    """Reads markup back: what it found of tags, attributes and text; every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.open += [] if tag == "meta" else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(max_examples=40)
@given(st.text())
def test_any_text_reads_back_as_one_piece_of_text_in_an_element_a_document_and_a_data_block(words: str) -> None:
    read = Reader(tag("p", words, title=words).text)
    assert (read.tags, read.text, read.attributes) == (["p"], visible(words), [("title", visible(words))])
    visible(words).encode("utf-8")
    root = ElementTree.fromstring(svg.document("run", words, (10, 20.5), "", [node("text", words, x=1)]))
    assert (root.get("aria-label"), root.get("viewBox"), root.get("width")) == (visible(words), "0 0 10 20.5", None)
    assert (root[-1].text or "") == visible(words)
    block = json_data("rows", {"name": words + "</script>"}).text
    inner = block.removeprefix('<script type="application/json" id="rows">').removesuffix("</script>")
    assert "<" not in inner
    assert json.loads(inner) == {"name": words + "</script>"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Kraków·日本", "Kraków·日本"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("line\nline", "line\\nline"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800<&>\"'", "\\ud800<&>\"'"),
    ],
)
def test_characters_that_cannot_be_seen_are_written_out(words: str, shown: str) -> None:
    assert visible(words) == shown
    assert escape(words) == html.escape(shown, quote=True)


def test_elements_have_their_attributes_and_only_our_own_calls_make_markup() -> None:
    assert tag("p", "<b>", tag("i", "&"), None, [7], class_="note").text == '<p class="note">&lt;b&gt;<i>&amp;</i>7</p>'
    made = tag("a", aria_label='"><script>', href=None, hidden=True, open=False)
    assert made == Markup('<a aria-label="&quot;&gt;&lt;script&gt;" hidden></a>')
    assert tag("br").text == "<br>"
    assert node("g", node("rect"), node("text", "it's <b>", x=1), None).text == (
        '<g><rect/><text x="1">it\'s &lt;b&gt;</text></g>'
    )
    with pytest.raises(AssertionError):
        asset("script", "let a = '</SCRIPT>'")
    # The example of the CSP specification: sha256 of alert('Hello, world.');
    assert content_hash("alert('Hello, world.');") == "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"


def test_a_figure_is_whole_and_needs_nothing_from_outside() -> None:
    assert not re.search(r"<script|href=|src=|url\(|@import", svg.style("run", "page", "ink"))
    drawn = figure("f", "Loads", "from 1 to 2", 40, text(1, 2, "<", anchor="end"), line(0, 0, 1.25, 1, "axis")).text
    assert 'viewBox="0 0 760 40" role="img" aria-labelledby="f-t" aria-describedby="f-d"' in drawn
    assert '<text x="1" y="2" text-anchor="end">&lt;</text><path d="M0 0L1.2 1" class="axis"></path>' in drawn


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""

    def luminance(colour: str) -> float:
        digits = colour.lstrip("#")
        digits = digits if len(digits) == 6 else "".join(2 * each for each in digits)
        parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK, PRINT])
def test_text_can_be_read_on_its_page(theme: Theme) -> None:
    for role in ("ink", "quiet", "link", "accent", "best"):
        assert contrast(attrs.asdict(theme)[role], theme.page) >= 4.5, role


def test_a_style_sheet_receives_both_themes() -> None:
    assert themed(":root", "accent_soft") == (
        ":root{--accent-soft:#fdf1ea}@media(prefers-color-scheme:dark){:root{--accent-soft:#2c1f18}}"
    )
    assert filled("a{color:$dark_ink}b{color:$print_ink}") == "a{color:#e4e7ea}b{color:#000}"
    with pytest.raises(KeyError, match="light_inc"):
        filled("$light_inc")


@pytest.mark.deep
def test_no_other_file_writes_a_colour() -> None:
    texts = {module.path: module.text for module in modules(ROOT)}
    texts |= {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.glob("*/**/assets/*.css")}
    del texts["broker/drawing/palette.py"]
    found = {(path, colour) for path, text in texts.items() for colour in COLOUR.findall(text)}
    assert {(path, colour) for path, colour in found if colour not in ("#000000", "#ffffff")} == set()


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_an_axis_holds_its_values_in_few_round_steps(value: float) -> None:
    end, steps = nice_axis(value)
    assert end >= value * (1 - 1e-6)
    assert 1 <= steps <= 5
    assert f"{end / steps:.0e}"[0] in "125"


def test_coordinates_and_labels_are_short() -> None:
    assert [number(1.0), number(2.25), number(-0.04), number(10)] == ["1", "2.2", "0", "10"]
    assert [clipped("orders", most) for most in (6, 5)] == ["orders", "orde…"]
    assert nice_axis(0.1 + 0.2)[1] == 3  # A rounding error adds no step.
