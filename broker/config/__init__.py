"""Hold Kafka's broker, topic and group settings as data, and the effective values of one broker, topic or group.

`setting` says what one setting is and reads its texts, `durations` those that are times; `servers`, `logs`, `groups`,
`share_groups` and `streams_groups` are the tables of the newest release, `changes` says what was otherwise before,
`removed` what is gone; `updates` what a running broker takes, `left_out` what no model reads; `catalog` joins them and
finds a row; `settings` joins given values, synonyms and defaults; `table` prints.
"""

from __future__ import annotations

from broker.config.catalog import CATALOG, catalog, find, lookup, names
from broker.config.changes import OLDEST_SETTINGS
from broker.config.setting import (
    INT_MAX,
    LONG_MAX,
    Scope,
    Setting,
    Unit,
    Value,
    ValueType,
    check,
    format_for_people,
    format_value,
    parse,
)
from broker.config.settings import PAIR_RULES, UNLIMITED_MS, PairRule, Settings

__all__ = (
    "CATALOG",
    "INT_MAX",
    "LONG_MAX",
    "OLDEST_SETTINGS",
    "PAIR_RULES",
    "UNLIMITED_MS",
    "PairRule",
    "Scope",
    "Setting",
    "Settings",
    "Unit",
    "Value",
    "ValueType",
    "catalog",
    "check",
    "find",
    "format_for_people",
    "format_value",
    "lookup",
    "names",
    "parse",
)
