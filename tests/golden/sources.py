"""Read which Kafka printed golden vectors, and choose what answers as that Kafka.

How: the `source` of a file begins with "Apache Kafka" and a version. A released version is answered as its release.
Vectors of one commit between two releases are known too, and answered as 4.0; of its logs the cleaner, messages of
magic 0 and 1 excepted, is that of 4.0.0, the rest that of 3.9.0. A log case may name the version alone; one that names
nothing was printed by that commit.

Example:

    >>> str(source_of("Apache Kafka 4.3.1, OpenJDK 17").release)
    '4.3'

Left out: patch versions, but for the two that add index entries append by append.

Source: kafka.log.{UnifiedLog,LogCleaner} and LogSegment of 3.9.0, 4.0.0 and of trunk 1eb7644.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from broker.errors import UsageError, shorten
from broker.releases import Release
from log.log_config import LogConfig

COMMIT: Final = "1eb7644349cb07139d6a3c1ad1986979647cac99"
"""The known commit between two releases; its vectors of logs name no source."""

INDEX_WHOLE_APPENDS: Final = frozenset({"3.9.0", "4.0.0"})
"""The versions that add index entries append by append, though later ones of their release do not."""
DEFAULTS_BEFORE_4_0: Final = {"message.timestamp.after.max.ms": 2**63 - 1}
"""That commit is some weeks older than the one that bounded how far ahead a record may be."""

_KAFKA: Final = re.compile(r"Apache Kafka (\S+?)(?: ([0-9a-f]{40}))?(?:,.*)?", re.ASCII)


class UnknownSourceError(Exception):
    """A source that no answer can be given as; the message says which are known."""


@attrs.frozen
class Source:
    """The version that printed vectors and its release; `between`: it was the known commit before that release."""

    version: str
    release: Release
    between: bool = False


BETWEEN: Final = Source("4.0.0-SNAPSHOT", Release("4.0"), between=True)


def source_of(text: Any) -> Source:
    """Return which Kafka a file's `source` names; raise UnknownSourceError where it is none that is known."""
    match = _KAFKA.fullmatch(text) if isinstance(text, str) else None
    if match is not None and match.groups() == ("4.0.0-SNAPSHOT", COMMIT):
        return BETWEEN
    try:
        if match is not None:
            return Source(match.group(1), Release(match.group(1)))
    except UsageError:
        pass
    raise UnknownSourceError(
        f"source {shorten(repr(text))} is not known; it is 'Apache Kafka' and a released version, such as 4.3.1"
    )


def source_of_case(case: Mapping[str, Any]) -> Source:
    """Return which Kafka the `source` of a log case names, as `source_of`."""
    text = case.get("source")
    if text is None:
        return BETWEEN
    return source_of(f"Apache Kafka {text}" if isinstance(text, str) and text[:1].isdigit() else text)


def config_of(case: Mapping[str, Any]) -> LogConfig:
    """Return the config of a log case, with the release that printed it; raise UnknownSourceError as `source_of`."""
    settings, source = case["config"], source_of_case(case)
    version = source.version
    if source.between:
        name = str(case.get("case"))
        has_cleaner_of_4_0 = name.startswith("compact-") and not name.startswith("compact-v1")
        settings = {**DEFAULTS_BEFORE_4_0, **settings}
        version = "4.0.0" if has_cleaner_of_4_0 else "3.9.0"
    config = LogConfig.parse(settings, Release(version))
    return attrs.evolve(config, indexes_whole_appends=True) if version in INDEX_WHOLE_APPENDS else config
