"""Write HTML and SVG elements from a tree of calls; escape every text that is not markup.

Source: HTML Living Standard, 13.1.2 (elements), 13.1.3 (text), 4.12.1.3 (what a script may not hold).
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from markupsafe import Markup

_SPECIAL: Final = re.compile("[&<>\"']").search
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

Content: TypeAlias = str | int | Iterable["Content"] | None


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


def tag(name: str, *content: Content, **attributes: str | float | None) -> Markup:
    """Return an element; write `class_` as class and `aria_label` as aria-label, leave out None."""
    given = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{''.join(given)}>{_flat(content)}</{name}>")


def _flat(content: Content) -> str:
    if isinstance(content, str):
        return content if isinstance(content, Markup) else escape(content)
    if content is None or isinstance(content, int):
        return "" if content is None else str(content)
    return "".join(_flat(part) for part in content)


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
