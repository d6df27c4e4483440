"""Text is escaped by construction; only our own calls make markup."""

from __future__ import annotations

import html
import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.drawing.element import Markup, asset, content_hash, escape, join, json_data, page, tag, visible


class Reader(HTMLParser):
    """Reads markup back: what it found of tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>", tag("i", "&"), class_="note") == Markup('<p class="note">&lt;b&gt;<i>&amp;</i></p>')


def test_attributes_are_escaped_and_absent_ones_are_left_out() -> None:
    made = tag("a", aria_label='"><script>', href=None, hidden=True, open=False)
    assert made == Markup('<a aria-label="&quot;&gt;&lt;script&gt;" hidden></a>')


def test_void_elements_have_no_end() -> None:
    assert tag("br") == Markup("<br>")


def test_content_may_be_nested_and_may_be_nothing() -> None:
    assert join("a", None, ["b", [Markup("<br>")]], 7) == Markup("ab<br>7")


@given(st.text())
def test_any_text_reads_back_as_one_piece_of_text(text: str) -> None:
    read = Reader(tag("p", text, title=text).text)
    assert read.tags == ["p"]
    assert read.text == visible(text)
    assert read.attributes == [("title", visible(text))]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Kraków·日本", "Kraków·日本"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("line\nline", "line\\nline"),
        ("a\u202eb", "a\\u202eb"),
        ("lone \ud800", "lone \\ud800"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_visible_text_can_be_encoded_and_holds_no_control_character(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert all(ord(character) >= 32 and ord(character) != 127 for character in shown)


@given(st.text())
def test_nothing_in_a_data_block_can_end_it(text: str) -> None:
    block = json_data("rows", {"name": text + "</script>"}).text
    inner = block.removeprefix('<script type="application/json" id="rows">').removesuffix("</script>")
    assert "<" not in inner
    assert json.loads(inner) == {"name": text + "</script>"}


def test_an_asset_that_closes_itself_is_refused() -> None:
    with pytest.raises(AssertionError):
        asset("script", "let a = '</SCRIPT>'")


def test_the_hash_of_a_script_is_the_one_that_browsers_compute() -> None:
    # The example of the CSP specification: sha256 of alert('Hello, world.');
    assert content_hash("alert('Hello, world.');") == "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"


def test_a_page_begins_with_the_doctype() -> None:
    assert page(tag("html")) == "<!doctype html>\n<html></html>\n"


@pytest.mark.parametrize(
    "text", ["", "plain 1,234 %", *"&<>\"'", "a&b", "é", "tab\t", "\x00<", "\u202e", "\ud800", "a\nb'"]
)
def test_text_is_escaped_as_the_standard_library_does(text: str) -> None:
    assert escape(text) == html.escape(visible(text), quote=True)
    assert tag("p", text, title=text).text == f'<p title="{escape(text)}">{escape(text)}</p>'
