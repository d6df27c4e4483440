"""Read which Kafka printed golden vectors, and choose what answers as that Kafka.

How: the `source` of a file begins with "Apache Kafka" and a version. A released version is answered as its release.
Vectors of one commit between two releases are known too, and answered as 4.0. A log case may name the version alone;
one that names nothing was printed by that commit.

Example:

    >>> str(source_of("Apache Kafka 4.3.1, OpenJDK 17").release)
    '4.3'

Left out: patch versions; two patches of one release that answer differently are not told apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import attrs

from broker.errors import UsageError, shorten
from broker.releases import Release
from tests.golden.runners import RUNNERS, Runner, run_striped

COMMIT: Final = "1eb7644349cb07139d6a3c1ad1986979647cac99"
"""The known commit between two releases; its vectors of logs name no source."""

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


def runners_of(source: Source) -> Mapping[str, Runner]:
    """Return by algorithm what answers as `source` did."""
    striped = partial(run_striped, release=source.release)
    return {**RUNNERS, "striped_replica_placer": striped}
