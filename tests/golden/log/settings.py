"""Say as which Kafka a golden case of log storage is answered: the one that printed it.

What it decides: the config of a case's log, with the release of Kafka and what the release alone does not say.

How: `source` of a case names a version such as 4.3.1. Each part of the one known commit between releases is some
release's: its logs are those of 3.9.0, its cleaner, messages of magic 0 and 1 excepted, is that of 4.0.0. Both add
index entries append by append.

Example: config_of({"config": {"segment.bytes": 700}, "source": "4.0.1"}).release is 4.0.

Source: kafka.log.{UnifiedLog,LogCleaner} and LogSegment of 3.9.0, 4.0.0 and of trunk 1eb7644.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.releases import Release
from log.log_config import LogConfig
from tests.golden.log.cases import Json
from tests.golden.sources import source_of_case

INDEX_WHOLE_APPENDS: Final = frozenset({"3.9.0", "4.0.0"})
"""The versions that add index entries append by append, though later ones of their release do not."""
DEFAULTS_BEFORE_4_0: Final = {"message.timestamp.after.max.ms": 2**63 - 1}
"""That commit is some weeks older than the one that bounded how far ahead a record may be."""


def config_of(case: Mapping[str, Json]) -> LogConfig:
    """Return the config of a case, with the release that printed it; raise UnknownSourceError as `source_of_case`."""
    settings, source = case["config"], source_of_case(case)
    version = source.version
    if source.between:
        name = str(case.get("case"))
        has_cleaner_of_4_0 = name.startswith("compact-") and not name.startswith("compact-v1")
        settings = {**DEFAULTS_BEFORE_4_0, **settings}
        version = "4.0.0" if has_cleaner_of_4_0 else "3.9.0"
    config = LogConfig.parse(settings, Release(version))
    return attrs.evolve(config, indexes_whole_appends=True) if version in INDEX_WHOLE_APPENDS else config
