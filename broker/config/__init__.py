"""Hold Kafka's broker, topic and group settings, and the effective values of one broker, topic or group.

setting         Describe one setting; parse and check its values.
catalog         Read settings.tsv; list the settings of a release and find one by name.
settings        Combine given values, synonyms and defaults into effective settings.
render          Print settings as a table, one in full, or JSON.
"""

from __future__ import annotations

from broker.config.catalog import OLDEST_SETTINGS, catalog, find, lookup, names
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
