"""HTML and SVG from a tree of calls: whatever is not markup by construction is escaped.

A `str` is text, always: names of topics, racks, files and clusters are other people's
and may say `<script>`. Markup is a type of its own, `Markup`, and only this module makes
it: from tags, from joined markup, and from the project's own style sheet and script.

Goals, most important first: nobody else's string can become markup; equal input, equal
bytes (attributes stand in the order given); the calls read like the page.

Example: tag("p", "<b>", class_="note") == Markup('<p class="note">&lt;b&gt;</p>').

Left out: parsing, and a table of allowed tags; the names of tags are ours.

Source: HTML Living Standard, 13.1.2 (elements), 13.1.3 (text), 4.12.1.3 (what a script may not hold).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import unicodedata
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import attrs

VOID: Final = frozenset({"br", "col", "input", "link", "meta"})
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@attrs.frozen
class Markup:
    """A piece of finished HTML or SVG."""

    text: str


Content: TypeAlias = Markup | str | int | Iterable["Content"] | None


def visible(text: str) -> str:
    r"""Return `text` with what a reader cannot see written out: control, format and lone surrogate characters.

    Example: visible("a\x1b[31m") == "a\\x1b[31m"; a right-to-left override becomes \u202e.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def escape(text: str) -> str:
    """Return `text` as HTML text, also fit for a quoted attribute, with unseen characters written out."""
    return html.escape(visible(text), quote=True)


def _flat(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Markup):
        return content.text
    if isinstance(content, str):
        return escape(content)
    if isinstance(content, int):
        return str(content)
    return "".join(_flat(part) for part in content)


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """Return one element. `class_` stands for class, `aria_label` for aria-label; None and False are left out."""
    opened = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = key.rstrip("_").replace("_", "-")
        opened.append(shown if value is True else f'{shown}="{escape(str(value))}"')
    start = f"<{' '.join(opened)}>"
    return Markup(start) if name in VOID else Markup(f"{start}{_flat(content)}</{name}>")


def join(*content: Content) -> Markup:
    """Return the parts one after another, text among them escaped."""
    return Markup(_flat(content))


def json_data(identifier: str, value: Any) -> Markup:
    """Return a data block that the page's script reads; nothing in it can end the block."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{escape(identifier)}">{safe}</script>')


def asset(name: str, text: str) -> Markup:
    """Return the project's own script or style, verbatim; it is checked not to close itself."""
    assert name in {"script", "style"}, name
    assert f"</{name}" not in text.lower(), name
    return Markup(f"<{name}>{text}</{name}>")


def content_hash(text: str) -> str:
    """Return the source expression of a content security policy that allows exactly this script or style."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def page(root: Markup) -> str:
    """Return the document of which `root` is the html element."""
    return f"<!doctype html>\n{root.text}\n"
