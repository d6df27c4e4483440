"""Define the colours of every picture and page: light, dark and print themes.

Source: WCAG 2.2, 1.4.3 and 1.4.11, for the contrast.
"""

from __future__ import annotations

from string import Template
from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class Theme:
    """Hold one CSS colour per role; `heat` holds the three numbers of `rgb()`, without an opacity."""

    page: str
    raised: str
    ink: str
    quiet: str
    rule: str
    link: str
    accent: str
    accent_soft: str
    best: str
    band: str
    bar: str
    blank: str
    heat: str


LIGHT: Final = Theme(
    page="#ffffff",
    raised="#f6f7f8",
    ink="#1c2126",
    quiet="#59636e",
    rule="#dde1e6",
    link="#1f5f99",
    accent="#b3400b",
    accent_soft="#fdf1ea",
    best="#197858",
    band="#a9dcc6",
    bar="#8d99a6",
    blank="#e3e6ea",
    heat="70 110 160",
)
DARK: Final = Theme(
    page="#14171a",
    raised="#1c2024",
    ink="#e4e7ea",
    quiet="#9aa5b0",
    rule="#30363d",
    link="#7db8ee",
    accent="#ff9457",
    accent_soft="#2c1f18",
    best="#5fcfa3",
    band="#235c48",
    bar="#717d89",
    blank="#3a4048",
    heat="110 160 220",
)
PRINT: Final = attrs.evolve(
    LIGHT, page="#fff", ink="#000", quiet="#444", rule="#ccc", link="#000", accent_soft="#fff", blank="#ddd"
)
"""Paper: black on white, without tinted surfaces."""


def themed(selector: str, *roles: str) -> str:
    """Return CSS that defines a variable for each role on `selector`, light by default and dark on request."""
    light, dark = (_variables(theme, roles) for theme in (LIGHT, DARK))
    return f"{selector}{{{light}}}@media(prefers-color-scheme:dark){{{selector}{{{dark}}}}}"


def filled(style_sheet: str) -> str:
    """Return a style sheet with `$light_ROLE`, `$dark_ROLE` and `$print_ROLE` replaced by the colours."""
    themes = {"light": LIGHT, "dark": DARK, "print": PRINT}
    colours = {
        f"{name}_{role}": colour for name, theme in themes.items() for role, colour in attrs.asdict(theme).items()
    }
    return Template(style_sheet).substitute(colours)


def _variables(theme: Theme, roles: tuple[str, ...]) -> str:
    colours = attrs.asdict(theme)
    return ";".join(f"--{role.replace('_', '-')}:{colours[role]}" for role in roles)
