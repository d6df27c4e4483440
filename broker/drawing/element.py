"""Write HTML and SVG elements from a tree of calls; escape every text that is not markup.

Source: HTML Living Standard, 13.1.2 (elements), 13.1.3 (text), 4.12.1.3 (what a script may not hold); XML 1.0, 2.4.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs

VOID: Final = frozenset({"br", "col", "input", "link", "meta"})
"""Elements that HTML closes without an end tag."""
_SPECIAL: Final = re.compile("[&<>\"']").search
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@attrs.frozen
class Markup:
    """Hold a piece of finished HTML or SVG."""

    text: str


Content: TypeAlias = Markup | str | int | Iterable["Content"] | None
Attribute: TypeAlias = str | int | float | bool | None


def visible(text: str) -> str:
    r"""Return `text` with control, format and unpaired surrogate characters written as escapes.

    >>> print(visible("a\x1b[31m"))
    a\x1b[31m
    >>> print(visible("a right-to-left override: \u202e"))
    a right-to-left override: \u202e
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def escape(text: str) -> str:
    """Return `text` escaped for HTML text or a quoted attribute; write control characters as escapes."""
    if text.isascii() and text.isprintable() and not _SPECIAL(text):  # Most of a page: numbers and plain names.
        return text
    return html.escape(visible(text), quote=True)


def escape_in_element(text: str) -> str:
    """Return `text` escaped for the content of an XML element, where quotes may stand as they are."""
    return html.escape(visible(text), quote=False)


def tag(name: str, *content: Content, **attributes: Attribute) -> Markup:
    """Return an HTML element; write `class_` as class and `aria_label` as aria-label, leave out None and False."""
    start = f"<{_opened(name, attributes)}>"
    return Markup(start) if name in VOID else Markup(f"{start}{_flat(content, escape)}</{name}>")


def node(name: str, *content: Content, **attributes: Attribute) -> Markup:
    """Return an SVG element; name its attributes as those of `tag`."""
    opened, inner = _opened(name, attributes), _flat(content, escape_in_element)
    return Markup(f"<{opened}>{inner}</{name}>" if inner else f"<{opened}/>")


def join(*content: Content) -> Markup:
    """Return the parts one after another; escape those that are text."""
    return Markup(_flat(content, escape))


def lines(*content: Content) -> Markup:
    """Return the parts, each on its own line; escape those that are text."""
    return Markup("\n".join(_flat(part, escape) for part in content))


def _opened(name: str, attributes: Mapping[str, Attribute]) -> str:
    opened = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = _attribute(key)
        opened.append(shown if value is True else f'{shown}="{escape(str(value))}"')
    return " ".join(opened)


@functools.cache
def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _flat(content: Content, escaped: Callable[[str], str]) -> str:
    if isinstance(content, Markup):
        return content.text
    if isinstance(content, str):
        return escaped(content)
    if content is None:
        return ""
    if isinstance(content, int):
        return str(content)
    return "".join([_flat(part, escaped) for part in content])


def json_data(identifier: str, value: Any) -> Markup:
    """Return a `script` block with `value` as JSON, escaped so that no text can end the block."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{escape(identifier)}">{safe}</script>')


def asset(name: str, text: str) -> Markup:
    """Return a `script` or `style` element with one of our own assets; assert that the asset cannot end it."""
    assert name in {"script", "style"}, name
    assert f"</{name}" not in text.lower(), name
    return Markup(f"<{name}>{text}</{name}>")


def content_hash(text: str) -> str:
    """Return the CSP source expression that allows this script or style: 'sha256-' and the digest in base64."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def page(root: Markup) -> str:
    """Return the HTML document whose `html` element is `root`."""
    return f"<!doctype html>\n{root.text}\n"
