"""One palette: legible in both themes, told apart by colour, and written nowhere else."""

from __future__ import annotations

import re
from itertools import combinations

import attrs
import pytest

from broker.drawing.palette import CATEGORIES, DARK, LIGHT, PRINT, Theme, category, filled, ink_on, themed
from tests.architecture.house import ROOT, modules

COLOUR = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![\w-])")
NEITHER = {"#000000", "#ffffff"}
"""Black and white need no palette."""


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, 0 for black and 1 for white (WCAG 2.2)."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * each for each in digits)
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK, PRINT])
@pytest.mark.parametrize("role", ["ink", "quiet", "link", "accent", "best"])
def test_text_can_be_read_on_its_page(theme: Theme, role: str) -> None:
    assert contrast(attrs.asdict(theme)[role], theme.page) >= 4.5


@pytest.mark.parametrize("colour", CATEGORIES)
def test_text_can_be_read_on_every_category(colour: str) -> None:
    assert contrast(ink_on(colour), colour) >= 3.0


def test_categories_differ_and_begin_again() -> None:
    assert all(one != other for one, other in combinations(CATEGORIES, 2))
    assert [category(place) for place in range(len(CATEGORIES) + 1)] == [*CATEGORIES, CATEGORIES[0]]


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
    assert {(path, colour) for path, colour in found if colour not in NEITHER} == set()
