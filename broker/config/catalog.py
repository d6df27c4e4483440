"""List all settings of a release by scope and name, and find a setting by its name.

How: `settings.tsv` has a row for each form that a setting has had: the releases with that form, eleven columns printed
from Kafka's released ConfigDefs, then ours: releases before 3.9, subjects left out, source and sentence. The row of an
older form names in `source` what changed it. The file is read once, when something is first looked up.

Example:

    >>> setting = lookup("retention.ms", Scope.TOPIC)
    >>> setting.default, setting.unit
    (604800000, <Unit.MS: 'ms'>)
    >>> lookup("num.recovery.threads.per.data.dir", Scope.BROKER, Release("3.9")).default
    1
    >>> for change in changes_of("group.coordinator.append.linger.ms", Scope.BROKER):
    ...     print(change.before, dict(change.was), change.source)
    4.2 {'default': 5, 'minimum': 0} KAFKA-19826
    4.0 {'default': 10} Kafka pull request 18274
    >>> find("log.retention.m")
    Traceback (most recent call last):
        ...
    broker.errors.UsageError: there is no setting 'log.retention.m'; the nearest is 'log.retention.ms'

Left out: what no model reads, such as security: rows whose column `left_out` names the subject.

Source: the ConfigDefs of Kafka 3.9.2, 4.0.1, 4.1.2, 4.2.1, 4.3.1 and 4.4.0; the KIPs and issues named in each row.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final

import attrs

from broker.config.setting import Scope, Setting, Unit, Value, ValueType
from broker.errors import UsageError, shorten
from broker.releases import KNOWN, NEWEST, Release
from broker.wording import nearest

OLDEST_SETTINGS: Final = Release("3.9")
"""The oldest release whose settings are known."""

EMPTY: Final = "-"
"""Stands in the table for an empty cell, so that no line ends with a tab."""

_UNITS_BY_ENDING: Final = (
    (".bytes.per.second", Unit.BYTES_PER_SECOND),
    (".bytes.between.snapshots", Unit.BYTES),
    (".bytes", Unit.BYTES),
    (".buffer.size", Unit.BYTES),
    (".ms", Unit.MS),
    (".seconds", Unit.SECONDS),
    (".minutes", Unit.MINUTES),
    (".hours", Unit.HOURS),
)
_RANGE: Final = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?\](?: or (-?\d+))?")
_CONVERTERS: Final[Mapping[ValueType, Callable[[str], Value]]] = {
    ValueType.BOOLEAN: "true".__eq__,
    ValueType.SHORT: int,
    ValueType.INT: int,
    ValueType.LONG: int,
    ValueType.DOUBLE: float,
    ValueType.STRING: str,
    ValueType.LIST: lambda text: tuple(text.split(",")) if text else (),
}
_COMPARED: Final = ("type", "default", "minimum", "maximum", "besides", "allowed", "allows_empty", "allows_repeats")
"""The fields of a setting whose older values are reported as changes."""


@attrs.frozen
class Row:
    """One row of the settings table, cells as text: one form of a setting, and its releases."""

    releases: str
    scope: str
    name: str
    type: str
    default: str
    validator: str
    lists: str
    internal: str
    deprecated: str
    update: str
    synonyms: str
    since: str
    deprecated_since: str
    left_out: str
    source: str
    sentence: str


COLUMNS: Final = tuple(field.name for field in attrs.fields(Row))


@attrs.frozen
class Change:
    """Hold the fields of a setting as they were before a release, and the source of the change."""

    before: Release
    source: str
    was: tuple[tuple[str, Any], ...]


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows of the table; the rows of one setting follow each other, oldest first."""
    data = pkgutil.get_data("broker.config", "settings.tsv")
    assert data is not None
    return parse_rows(data.decode("utf-8"))


def parse_rows(text: str) -> tuple[Row, ...]:
    """Return the rows of a table, whose second line names the columns."""
    _, columns, *lines = text.splitlines()
    assert tuple(columns.split("\t")) == COLUMNS, columns
    return tuple(Row(*("" if cell == EMPTY else cell for cell in line.split("\t"))) for line in lines)


@cache
def _forms() -> Mapping[tuple[Scope, str], tuple[Row, ...]]:
    """Return the rows of each setting, oldest first."""
    forms: dict[tuple[Scope, str], tuple[Row, ...]] = {}
    for row in rows():
        key = Scope(row.scope), row.name
        forms[key] = (*forms.get(key, ()), row)
    return forms


@cache
def catalog(release: Release = NEWEST) -> tuple[Setting, ...]:
    """Return all settings of a release; raise UsageError for a release older than 3.9, whose settings are not known."""
    if release < OLDEST_SETTINGS:
        raise UsageError(f"the settings of Kafka {release} are not known; allowed are {OLDEST_SETTINGS} to {KNOWN[-1]}")
    found = []
    for forms in _forms().values():
        row = next((row for row in forms if release.name in row.releases.split()), None)
        if row is not None and not row.left_out:
            found.append(_setting(row, forms))
    return tuple(found)


@cache
def _by_scope(release: Release) -> Mapping[Scope, Mapping[str, Setting]]:
    settings = catalog(release)
    return {scope: {setting.name: setting for setting in settings if setting.scope is scope} for scope in Scope}


def names(scope: Scope, release: Release = NEWEST) -> tuple[str, ...]:
    """Return the names of all settings of one scope, in the table's order."""
    return tuple(_by_scope(release)[scope])


def lookup(name: str, scope: Scope, release: Release = NEWEST) -> Setting:
    """Return the setting `name` of one scope; raise UsageError, which suggests the nearest name, if there is none."""
    found = _by_scope(release)[scope].get(name)
    if found is None:
        raise UsageError(f"there is no {scope.value} setting {shorten(name)!r}{_hint(name, (scope,), release)}")
    return found


def find(name: str, release: Release = NEWEST) -> tuple[Setting, ...]:
    """Return the settings called `name`, of every scope; raise UsageError, with the nearest name, if there is none."""
    found = tuple(setting for setting in catalog(release) if setting.name == name)
    if not found:
        raise UsageError(f"there is no setting {shorten(name)!r}{_hint(name, Scope, release)}")
    return found


def changes_of(name: str, scope: Scope) -> tuple[Change, ...]:
    """Return the changes of a setting between releases, the newest first."""
    forms = _forms().get((scope, name), ())
    changes = []
    for older, newer in pairwise(forms):
        before, after = _setting(older, forms), _setting(newer, forms)
        was = tuple(
            (field, getattr(before, field)) for field in _COMPARED if getattr(before, field) != getattr(after, field)
        )
        if was:
            changes.append(Change(Release(_first(newer)), older.source, was))
    return tuple(reversed(changes))


def left_out_because(name: str, scopes: Iterable[Scope] = Scope) -> str:
    """Return the subject of a setting that the catalog leaves out, such as "security"; an empty text for any other."""
    forms = _forms()
    return next((forms[scope, name][0].left_out for scope in scopes if (scope, name) in forms), "")


def unit_of(name: str) -> Unit:
    """Return the unit that the suffix of a setting's name implies (`.ms`, `.bytes`, …), Unit.NONE without one."""
    return next((unit for ending, unit in _UNITS_BY_ENDING if name.endswith(ending)), Unit.NONE)


def _first(row: Row) -> str:
    return row.releases.split()[0]


def _setting(row: Row, forms: tuple[Row, ...]) -> Setting:
    """Return the form of a setting that one of its rows describes."""
    kind = ValueType(row.type.lower())
    newest, oldest = forms[-1], forms[0]
    releases = newest.releases.split()
    discouraged = next((_first(each) for each in forms if each.deprecated == "true"), "")
    return Setting(
        name=row.name,
        scope=Scope(row.scope),
        type=kind,
        unit=unit_of(row.name),
        default=None if row.default == "null" else _CONVERTERS[kind](row.default),
        **_bounds(row.validator),
        # Kafka's answer to a repeated item is printed only for lists that are not empty by default.
        allows_empty=kind is not ValueType.LIST or "empty" in row.lists.split(","),
        allows_repeats="repeated" in row.lists.split(","),
        synonyms=tuple(row.synonyms.split(",")) if row.synonyms else (),
        sentence=newest.sentence,
        source=newest.source,
        since=oldest.since or ("" if _first(oldest) == OLDEST_SETTINGS.name else _first(oldest)),
        until="" if releases[-1] == _newest_of_table() else releases[-1],
        deprecated=(oldest.deprecated_since or discouraged) if row.deprecated == "true" else "",
        update=row.update,
        internal=row.internal == "true",
    )


def _bounds(validator: str) -> dict[str, Any]:
    """Return the fields of Setting that a ConfigDef's validator prints, such as "[1,...,9] or -1" or "[a, b]"."""
    if not validator:
        return {}
    found = _RANGE.fullmatch(validator)
    if found is None:
        return {"allowed": tuple(validator[1:-1].split(", "))}
    bounds = (None if number is None else int(number) for number in found.groups())
    return dict(zip(("minimum", "maximum", "besides"), bounds, strict=True))


@cache
def _newest_of_table() -> str:
    return max((row.releases.split()[-1] for row in rows()), key=KNOWN.index)


def _hint(name: str, scopes: Iterable[Scope], release: Release) -> str:
    """Return where else the name is a setting: in other releases, in Kafka alone; or the nearest name that is one."""
    reason = left_out_because(name, scopes)
    if reason:
        return f" here: {reason} is left out"
    for scope in scopes:
        held = [each for row in _forms().get((scope, name), ()) for each in row.releases.split()]
        if held:
            had = held[0] if len(held) == 1 else f"{held[0]} to {held[-1]}"
            return f" in Kafka {release}; {had} {'has' if len(held) == 1 else 'have'} it"
    near = nearest(name, [each for scope in scopes for each in names(scope, release)])
    return "" if near is None else f"; the nearest is {near!r}"
