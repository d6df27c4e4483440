"""Render the settings catalog as text: a table, one setting in full, or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from broker.config.catalog import Change, changes_of
from broker.config.setting import Scope, Setting, ValueType, format_for_people, format_value

_NAMES: Final = (
    *("name", "scope", "type", "unit", "default", "minimum", "maximum", "allowed", "synonyms", "besides"),
    *("allows_empty", "allows_repeats", "update", "since", "until", "deprecated", "internal", "sentence", "source"),
)
"""The properties of a setting in JSON, in their order."""


def render_table(settings: Sequence[Setting]) -> str:
    """Return an aligned table with one line per setting: scope, name, type, default, unit, default in words."""
    rows = [("scope", "name", "type", "default", "unit", "in words")]
    rows += [
        (
            setting.scope.value,
            setting.name,
            setting.type.value,
            format_value(setting.default) or "-",
            setting.unit.value or "-",
            format_for_people(setting, setting.default),
        )
        for setting in settings
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def render_one(setting: Setting) -> str:
    """Return every property of one setting as text, one property per line."""
    facts = [
        ("scope", setting.scope.value),
        ("type", setting.type.value),
        ("default", _default(setting)),
        ("unit", setting.unit.value),
        ("allowed", setting.describe_allowed()),
        ("falls back to", ", then ".join(setting.synonyms)),
        ("update", setting.update or ("needs a restart" if setting.scope is Scope.BROKER else "")),
        ("since", setting.since),
        ("until", setting.until),
        ("deprecated", setting.deprecated),
        *((f"before {change.before}", _change(change)) for change in changes_of(setting.name, setting.scope)),
        ("documented", "no: internal to Kafka" if setting.internal else ""),
        ("source", setting.source),
    ]
    width = max(len(word) for word, _ in facts)
    lines = [f"  {word.ljust(width)}  {value}" for word, value in facts if value]
    return "\n".join([setting.name, f"  {setting.sentence}", *lines])


def render_json(settings: Sequence[Setting]) -> str:
    """Return the settings as a JSON list of objects, with JSON's own numbers, lists and null."""
    return json.dumps([_record(setting) for setting in settings], indent=2)


def _default(setting: Setting) -> str:
    exact, words = format_value(setting.default), format_for_people(setting, setting.default)
    return exact if exact == words else f"{exact} ({words})" if exact else words


def _change(change: Change) -> str:
    """Return what a setting was before a release changed it: "default 5, minimum 0 (KAFKA-19826)"."""
    was = ", ".join(_field(name, value) for name, value in change.was)
    return f"{was} ({change.source})"


def _field(name: str, value: Any) -> str:
    word = name.replace("_", " ")
    if value is None:
        return f"no {word}"
    if name.startswith("allows"):
        return word if value else f"{word} not"
    return f"{word} {value.value if isinstance(value, ValueType) else format_value(value)}"


def _record(setting: Setting) -> dict[str, Any]:
    found = {name: getattr(setting, name) for name in _NAMES}
    found |= {name: found[name].value for name in ("scope", "type", "unit")}
    found |= {name: found[name] or None for name in ("unit", "update", "since", "until", "deprecated")}
    return found if setting.type is ValueType.LIST else found | dict.fromkeys(("allows_empty", "allows_repeats"))
