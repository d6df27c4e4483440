"""Describe one setting of Kafka as data: name, type, unit, default, range and source.

Source: clients/org.apache.kafka.common.config.ConfigDef, 4.3.1; of lists, ConfigDef.ValidList (KIP-1161).
"""

from __future__ import annotations

import enum
import math
import re
from typing import Final, TypeAlias

import attrs

from broker.errors import UsageError, shorten
from broker.ids import INT64_MAX
from broker.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_size

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""What a setting can hold; None is Kafka's null: not set, and no default of its own."""

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = INT64_MAX


class Scope(enum.Enum):
    """List the scopes of settings: broker, topic or group; two scopes may have a setting of the same name."""

    BROKER = "broker"
    """The broker's own file, or one of its dynamic overrides."""

    TOPIC = "topic"
    """One topic; where it says nothing, the broker's synonym holds."""

    GROUP = "group"
    """One consumer group; where it says nothing, the broker's synonym holds."""


class ValueType(enum.Enum):
    """List the value types of settings, a subset of Kafka's `ConfigDef.Type`."""

    BOOLEAN = "boolean"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"


class Unit(enum.Enum):
    """List the units of numeric settings."""

    NONE = ""
    MS = "ms"
    SECONDS = "s"
    MINUTES = "min"
    HOURS = "h"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"


UNIT_MS: Final = {Unit.MS: 1, Unit.SECONDS: SECOND_MS, Unit.MINUTES: MINUTE_MS, Unit.HOURS: HOUR_MS}
"""How many milliseconds one of a unit of time is."""

TYPE_RANGES: Final = {
    ValueType.SHORT: (-(2**15), 2**15 - 1),
    ValueType.INT: (-(2**31), INT_MAX),
    ValueType.LONG: (-(2**63), LONG_MAX),
}
BY_DURATION: Final = "by_duration:PnDTnHnMn.nS"
"""Stands among the allowed texts for every duration in days, hours, minutes and seconds, as ISO 8601 writes it."""

_BY: Final = "by_duration:"
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
_FRACTION: Final = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")


@attrs.frozen(kw_only=True)
class Setting:
    """Describe one setting of Kafka: one row of the catalog.

    `minimum` and `maximum` are both included and None where only the type bounds the number; `besides` is one
    more number that is allowed. `allowed` lists the texts a string (or each item of a list) may be, empty for any.
    `synonyms` are the broker's settings that hold where a topic or group says nothing, the first that is set wins.
    `since`, `until` and `deprecated` are releases: the first and the last that have the setting, and the first that
    discourages it. `update` says whether a running broker takes a new value: for one broker, for all of them, or,
    empty, only at its start. `internal` marks what Kafka does not document.
    """

    name: str
    scope: Scope
    type: ValueType
    unit: Unit
    default: Value
    minimum: int | None = None
    maximum: int | None = None
    besides: int | None = None
    allowed: tuple[str, ...] = ()
    allows_empty: bool = True
    allows_repeats: bool = False
    synonyms: tuple[str, ...] = ()
    sentence: str
    source: str
    since: str = ""
    until: str = ""
    deprecated: str = ""
    update: str = ""
    internal: bool = False

    @property
    def range(self) -> tuple[int, int] | None:
        """Return the smallest and the largest allowed whole number; None if the setting is no whole number."""
        if self.type not in TYPE_RANGES:
            return None
        least, greatest = TYPE_RANGES[self.type]
        return (
            least if self.minimum is None else self.minimum,
            greatest if self.maximum is None else self.maximum,
        )

    def describe_allowed(self) -> str:
        """Return a sentence that lists the allowed values."""
        if self.range is not None:
            besides = "" if self.besides is None else f", and {self.besides}"
            return f"whole numbers from {self.range[0]} to {self.range[1]}{besides}"
        if self.type is ValueType.DOUBLE:
            if self.minimum is None or self.maximum is None:
                return "numbers"
            return f"numbers from {self.minimum} to {self.maximum}"
        if self.type is ValueType.BOOLEAN:
            return "true and false"
        if self.type is ValueType.LIST:
            each = "" if self.allows_repeats else ", each at most once"
            return f"{'' if self.allows_empty else 'non-empty '}lists of {', '.join(self.allowed) or 'texts'}{each}"
        return ", ".join(self.allowed) or "any text"


def parse(setting: Setting, text: str) -> Value:
    """Return the value spelled by `text`; raise UsageError with the allowed values."""
    return check(setting, _convert(setting, text.strip()))


def check(setting: Setting, value: Value) -> Value:
    """Return `value` if the setting allows it; raise UsageError with the value and the allowed range otherwise."""
    if value is None and setting.default is None:
        return None
    match setting.type:
        case ValueType.BOOLEAN:
            fits = isinstance(value, bool)
        case ValueType.STRING:
            fits = isinstance(value, str) and (not setting.allowed or _text_fits(setting, value))
        case ValueType.LIST:
            fits = _list_fits(setting, value)
        case ValueType.DOUBLE:
            fits = _number_fits(setting, value)
        case _:
            fits = _whole_fits(setting, value)
    if not fits:
        raise _refused(setting, format_value(value))
    return value


def format_value(value: Value) -> str:
    """Return a value as Kafka's tools print it: true, 1048576, delete,compact; an empty string for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def format_for_people(setting: Setting, value: Value) -> str:
    """Return a value with its unit spelled out, such as "7 days", "1 GiB" or "no limit"."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return format_value(value) or "not set"
    if value in (INT_MAX, LONG_MAX) or (setting.type is ValueType.DOUBLE and value > LONG_MAX):
        return "no limit"
    if setting.unit is Unit.BYTES and value > 0:
        return format_size(value)
    if setting.unit in UNIT_MS and value > 0:
        return _format_duration(int(value) * UNIT_MS[setting.unit])
    return str(value)


def _format_duration(duration_ms: int) -> str:
    for word, size_ms in (("day", DAY_MS), ("hour", HOUR_MS), ("minute", MINUTE_MS), ("second", SECOND_MS)):
        if duration_ms % size_ms == 0:
            count = duration_ms // size_ms
            return f"{count} {word}" + ("" if count == 1 else "s")
    return f"{duration_ms} ms"


def _convert(setting: Setting, text: str) -> Value:
    match setting.type:
        case ValueType.BOOLEAN if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case ValueType.STRING:
            return text
        case ValueType.LIST:
            return tuple(item.strip() for item in text.split(",")) if text else ()
        case ValueType.DOUBLE if _FRACTION.fullmatch(text):
            return float(text)
        case ValueType.SHORT | ValueType.INT | ValueType.LONG if _WHOLE.fullmatch(text):
            return int(text)
    raise _refused(setting, text)


def _text_fits(setting: Setting, text: str) -> bool:
    if text.startswith(_BY) and BY_DURATION in setting.allowed:
        return is_duration(text.removeprefix(_BY))
    return text in setting.allowed


def _number_fits(setting: Setting, value: Value) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return (setting.minimum is None or value >= setting.minimum) and (
        setting.maximum is None or value <= setting.maximum
    )


def _whole_fits(setting: Setting, value: Value) -> bool:
    assert setting.range is not None, setting.name
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return value == setting.besides or setting.range[0] <= value <= setting.range[1]


def _list_fits(setting: Setting, value: Value) -> bool:
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        return False
    if not value and not setting.allows_empty:
        return False
    if not setting.allows_repeats and ("" in value or len(set(value)) != len(value)):
        return False
    return not setting.allowed or all(item in setting.allowed for item in value)


def _refused(setting: Setting, shown: str) -> UsageError:
    return UsageError(f"{setting.name} is {shorten(shown) or 'empty'}; allowed are {setting.describe_allowed()}")


_NUMBER: Final = r"([-+]?[0-9]{1,400})"
_DURATION: Final = re.compile(
    rf"([-+]?)P(?:{_NUMBER}D)?(T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}(?:[.,]([0-9]{{0,9}}))?S)?)?", re.IGNORECASE
)
_SECONDS: Final = (86_400, 3600, 60, 1)
_NANOS: Final = 1_000_000_000
_INT64_MIN: Final = -INT64_MAX - 1


def is_duration(text: str) -> bool:
    """Return whether a text is a duration of zero or more in Java's form of ISO 8601."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return False
    sign, days, time, hours, minutes, seconds, fraction = found.groups()
    numbers = (days, hours, minutes, seconds)
    if not any(numbers) or time == "T":
        return False
    parts = [int(number or 0) * size for number, size in zip(numbers, _SECONDS, strict=True)]
    sums = [sum(parts[place:]) for place in range(len(parts))]
    nanos = int(f"{fraction or '':0<9}") * (-1 if seconds and seconds.startswith("-") else 1)
    total = (sums[0] * _NANOS + nanos) * (-1 if sign == "-" else 1)
    return total >= 0 and all(_INT64_MIN <= each <= INT64_MAX for each in (*parts, *sums, total // _NANOS))
