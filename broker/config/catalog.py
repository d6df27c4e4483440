"""List all settings by scope and name, and find a setting by its name.

The order is that of the tables: requests, replication, controller, transactions, logs, groups and
offsets of a broker; then what a topic and what a group may say for itself.

Example:

    >>> setting = lookup("retention.ms", Scope.TOPIC)
    >>> setting.default, setting.unit
    (604800000, <Unit.MS: 'ms'>)
    >>> [found.scope.name for found in find("min.insync.replicas")]
    ['BROKER', 'TOPIC']
    >>> find("log.retention.m")
    Traceback (most recent call last):
        ...
    broker.errors.UsageError: there is no setting 'log.retention.m'; the nearest is 'log.retention.ms'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker.config.groups import GROUP_OVERRIDES, GROUPS, OFFSETS
from broker.config.logs import BROKER_LOGS, TOPICS
from broker.config.servers import CONTROLLER, REPLICATION, REQUESTS, TRANSACTIONS
from broker.config.setting import Scope, Setting
from broker.errors import UsageError, shorten
from broker.wording import nearest

CATALOG: Final[tuple[Setting, ...]] = (
    REQUESTS + REPLICATION + CONTROLLER + TRANSACTIONS + BROKER_LOGS + GROUPS + OFFSETS + TOPICS + GROUP_OVERRIDES
)
_BY_SCOPE: Final[Mapping[Scope, Mapping[str, Setting]]] = MappingProxyType(
    {
        scope: MappingProxyType({setting.name: setting for setting in CATALOG if setting.scope is scope})
        for scope in Scope
    }
)


def names(scope: Scope) -> tuple[str, ...]:
    """Return the names of all settings of one scope, in the catalog's order."""
    return tuple(_BY_SCOPE[scope])


def lookup(name: str, scope: Scope) -> Setting:
    """Return the setting `name` of one scope; raise UsageError, which suggests the nearest name, if there is none."""
    found = _BY_SCOPE[scope].get(name)
    if found is None:
        raise UsageError(f"there is no {scope.value} setting {shorten(name)!r}{_nearest(name, names(scope))}")
    return found


def find(name: str) -> tuple[Setting, ...]:
    """Return the settings called `name`, of every scope; raise UsageError, with the nearest name, if there is none."""
    found = tuple(setting for setting in CATALOG if setting.name == name)
    if not found:
        every = tuple(setting.name for setting in CATALOG)
        raise UsageError(f"there is no setting {shorten(name)!r}{_nearest(name, every)}")
    return found


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = nearest(name, known)
    return "" if near is None else f"; the nearest is {near!r}"
