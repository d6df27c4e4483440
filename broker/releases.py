"""Name the releases of Kafka whose behaviour this library reproduces, and order them by age.

Source: the directories of org.apache.kafka:kafka-clients on Maven Central.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from broker.errors import UsageError, shorten

KNOWN: Final = (
    *("0.10.2", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4"),
)
"""The names of the known releases, oldest first; before 1.0 a release has three numbers, since then two."""

_NAME: Final = re.compile(r"(0\.\d{1,2}\.\d|\d\.\d{1,2})(?:\.\d{1,2}){0,2}", re.ASCII)


def _named(text: str) -> str:
    match = _NAME.fullmatch(text)
    name = match.group(1) if match else text
    name = "0.11" if name.startswith("0.11") else name
    if name not in KNOWN:
        raise UsageError(f"release {shorten(text)!r} of Kafka is not known; allowed are {KNOWN[0]} to {KNOWN[-1]}")
    return name


@attrs.frozen(order=True)
class Release:
    """Name one release of Kafka, such as 4.1; sort by age; raise UsageError for an unknown name."""

    name: str = attrs.field(converter=_named, order=KNOWN.index)

    def __str__(self) -> str:
        return self.name


NEWEST: Final = Release("4.4")
"""The release that is answered for by default: 4.4.0."""
