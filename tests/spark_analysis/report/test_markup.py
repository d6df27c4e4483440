"""Text is escaped and reads back, figures stand by themselves, colours can be read, axes have round ends."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from spark_analysis.report.figure import clipped, figure, line, nice_axis, number, text
from spark_analysis.report.markup import asset, content_hash, escape, json_data, tag, visible
from tests.architecture.house import ROOT, modules
from tests.spark_analysis.report.test_page import Outline

CSS = (ROOT / "spark_analysis" / "report" / "assets" / "report.css").read_text()


@settings(max_examples=40)
@given(st.text())
def test_any_text_reads_back_as_one_piece_of_text_in_an_element_and_a_data_block(words: str) -> None:
    read = Outline(tag("p", words, title=words))
    assert (read.tags, "".join(read.texts)) == ([("p", {"title": visible(words)})], visible(words))
    visible(words).encode("utf-8")
    block = json_data("rows", {"name": words + "</script>"})
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
    assert tag("p", "<b>", tag("i", "&"), None, [7], class_="note") == '<p class="note">&lt;b&gt;<i>&amp;</i>7</p>'
    assert tag("a", aria_label='"><script>', href=None) == Markup('<a aria-label="&quot;&gt;&lt;script&gt;"></a>')
    with pytest.raises(AssertionError):
        asset("script", "let a = '</SCRIPT>'")
    # The example of the CSP specification: sha256 of alert('Hello, world.');
    assert content_hash("alert('Hello, world.');") == "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
    drawn = figure("f", "Loads", "from 1 to 2", 40, text(1, 2, "<", anchor="end"), line(0, 0, 1.25, 1, "axis"))
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


@pytest.mark.parametrize("theme", range(3))
def test_text_can_be_read_on_its_page(theme: int) -> None:
    """The style sheet has three themes: light, dark and paper, each with all colours."""
    colours = dict(re.findall(r"--([a-z-]+): (#\w+);", re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[theme]))
    for role in ("ink", "quiet", "link", "accent", "best"):
        assert contrast(colours[role], colours["page"]) >= 4.5, role
    assert len(colours) >= 10


@pytest.mark.deep
def test_colours_stand_in_the_themes_alone() -> None:
    rules = re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    texts = [rules, *(module.text for module in modules(ROOT, packages=("broker", "spark_analysis")))]
    assert [found for text in texts for found in re.findall(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![\w-])", text)] == []


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
