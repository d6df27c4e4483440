"""Build rows of the settings catalog, so that each row reads as one line of a table.

Each takes Kafka's name, the default, one sentence and the class that defines the setting; the unit
follows from the end of the name where Kafka put it there (`.ms`, `.bytes`, `.hours`), and a row
that needs another one says so.

Example:

    >>> unit_of("replica.lag.time.max.ms"), unit_of("segment.bytes")
    (<Unit.MS: 'ms'>, <Unit.BYTES: 'bytes'>)
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from broker.config.setting import Scope, Setting, Unit, Value, ValueType

_UNITS_BY_ENDING: Final = (
    (".bytes.per.second", Unit.BYTES_PER_SECOND),
    (".bytes", Unit.BYTES),
    (".buffer.size", Unit.BYTES),
    (".ms", Unit.MS),
    (".seconds", Unit.SECONDS),
    (".minutes", Unit.MINUTES),
    (".hours", Unit.HOURS),
)


def unit_of(name: str) -> Unit:
    """Return the unit that the suffix of a setting's name implies (`.ms`, `.bytes`, …), Unit.NONE without one."""
    for ending, unit in _UNITS_BY_ENDING:
        if name.endswith(ending):
            return unit
    return Unit.NONE


def row(scope: Scope, kind: ValueType, name: str, default: Value, sentence: str, source: str, **rest: Any) -> Setting:
    """Return one setting of the catalog; `rest` are further fields of Setting, such as `minimum` or `since`."""
    unit = rest.pop("unit", unit_of(name))
    return Setting(
        name=name, scope=scope, type=kind, unit=unit, default=default, sentence=sentence, source=source, **rest
    )


whole = partial(row, Scope.BROKER, ValueType.INT)
small = partial(row, Scope.BROKER, ValueType.SHORT)
long = partial(row, Scope.BROKER, ValueType.LONG)
real = partial(row, Scope.BROKER, ValueType.DOUBLE)
flag = partial(row, Scope.BROKER, ValueType.BOOLEAN)
text = partial(row, Scope.BROKER, ValueType.STRING)
texts = partial(row, Scope.BROKER, ValueType.LIST)

topic_whole = partial(row, Scope.TOPIC, ValueType.INT)
topic_long = partial(row, Scope.TOPIC, ValueType.LONG)
topic_real = partial(row, Scope.TOPIC, ValueType.DOUBLE)
topic_flag = partial(row, Scope.TOPIC, ValueType.BOOLEAN)
topic_text = partial(row, Scope.TOPIC, ValueType.STRING)
topic_texts = partial(row, Scope.TOPIC, ValueType.LIST)

group_whole = partial(row, Scope.GROUP, ValueType.INT)
group_flag = partial(row, Scope.GROUP, ValueType.BOOLEAN)
group_text = partial(row, Scope.GROUP, ValueType.STRING)


def group_of_broker(name: str, default: int, sentence: str, source: str, minimum: int, since: str) -> Setting:
    """Return a whole-number setting of a group that falls back to the broker's `group.` setting of the same name."""
    return group_whole(name, default, sentence, source, minimum=minimum, synonyms=(f"group.{name}",), since=since)
