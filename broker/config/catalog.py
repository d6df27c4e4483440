"""List all settings of a release by scope and name, and find a setting by its name.

The order is that of the tables: requests, replication, controller, transactions, logs, groups, offsets, share and
streams groups of a broker; then what a topic and what a group may say for itself; each with what was removed at its
end. Every function takes a release, the newest where none is given.

Example:

    >>> setting = lookup("retention.ms", Scope.TOPIC)
    >>> setting.default, setting.unit
    (604800000, <Unit.MS: 'ms'>)
    >>> lookup("num.recovery.threads.per.data.dir", Scope.BROKER, Release("3.9")).default
    1
    >>> [found.scope.name for found in find("min.insync.replicas")]
    ['BROKER', 'TOPIC']
    >>> find("log.retention.m")
    Traceback (most recent call last):
        ...
    broker.errors.UsageError: there is no setting 'log.retention.m'; the nearest is 'log.retention.ms'

Left out: what `left_out` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import attrs

from broker.config.changes import OLDEST_SETTINGS, form_in, has
from broker.config.groups import GROUP_OVERRIDES, GROUPS, OFFSETS
from broker.config.left_out import reason_of
from broker.config.logs import BROKER_LOGS, TOPICS
from broker.config.removed import REMOVED, REMOVED_TOPICS
from broker.config.servers import CONTROLLER, REPLICATION, REQUESTS, TRANSACTIONS
from broker.config.setting import Scope, Setting
from broker.config.share_groups import SHARE_COORDINATOR, SHARE_GROUPS, SHARE_OVERRIDES
from broker.config.streams_groups import STREAMS_GROUPS, STREAMS_OVERRIDES
from broker.config.updates import update_mode
from broker.errors import UsageError, shorten
from broker.releases import KNOWN, NEWEST, Release
from broker.wording import nearest

_COORDINATORS: Final = GROUPS + OFFSETS + SHARE_GROUPS + SHARE_COORDINATOR + STREAMS_GROUPS
_BROKERS: Final = REQUESTS + REPLICATION + CONTROLLER + TRANSACTIONS + BROKER_LOGS + _COORDINATORS + REMOVED
_EVERY: Final[tuple[Setting, ...]] = (
    *(attrs.evolve(setting, update=update_mode(setting.name)) for setting in _BROKERS),
    *(TOPICS + REMOVED_TOPICS + GROUP_OVERRIDES + SHARE_OVERRIDES + STREAMS_OVERRIDES),
)


@cache
def catalog(release: Release = NEWEST) -> tuple[Setting, ...]:
    """Return all settings of a release; raise UsageError for a release older than 3.9, whose settings are not known."""
    if release < OLDEST_SETTINGS:
        raise UsageError(f"the settings of Kafka {release} are not known; allowed are {OLDEST_SETTINGS} to {NEWEST}")
    return tuple(form_in(setting, release) for setting in _EVERY if has(setting, release))


CATALOG: Final = catalog()
"""All settings of the newest release."""


@cache
def _by_scope(release: Release) -> Mapping[Scope, Mapping[str, Setting]]:
    settings = catalog(release)
    return MappingProxyType(
        {
            scope: MappingProxyType({setting.name: setting for setting in settings if setting.scope is scope})
            for scope in Scope
        }
    )


def names(scope: Scope, release: Release = NEWEST) -> tuple[str, ...]:
    """Return the names of all settings of one scope, in the catalog's order."""
    return tuple(_by_scope(release)[scope])


def lookup(name: str, scope: Scope, release: Release = NEWEST) -> Setting:
    """Return the setting `name` of one scope; raise UsageError, which suggests the nearest name, if there is none."""
    found = _by_scope(release)[scope].get(name)
    if found is None:
        hint = _hint(name, [each for each in _EVERY if each.scope is scope], release, scope)
        raise UsageError(f"there is no {scope.value} setting {shorten(name)!r}{hint}")
    return found


def find(name: str, release: Release = NEWEST) -> tuple[Setting, ...]:
    """Return the settings called `name`, of every scope; raise UsageError, with the nearest name, if there is none."""
    found = tuple(setting for setting in catalog(release) if setting.name == name)
    if not found:
        raise UsageError(f"there is no setting {shorten(name)!r}{_hint(name, list(_EVERY), release)}")
    return found


def _hint(name: str, known: list[Setting], release: Release, scope: Scope | None = None) -> str:
    """Return where else the name is a setting: in other releases, in Kafka alone; or the nearest name that is one."""
    elsewhere = [each for each in known if each.name == name]
    if elsewhere:
        held = [each for each in map(Release, KNOWN) if each >= OLDEST_SETTINGS and has(elsewhere[0], each)]
        had = f"{held[0]}" if len(held) == 1 else f"{held[0]} to {held[-1]}"
        return f" in Kafka {release}; {had} {'has' if len(held) == 1 else 'have'} it"
    reason = reason_of(name, scope)
    if reason is not None:
        return f" here: {reason} is left out"
    near = nearest(name, [each.name for each in known if has(each, release)])
    return "" if near is None else f"; the nearest is {near!r}"
