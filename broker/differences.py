"""List what differs between the releases of Kafka that this library answers for, 3.9 to 4.4.

Constraints: every place in the code that compares a release has its file in a row of differences.tsv, and the other way
round; every switch of replication whose first release is later than 3.9 has its name in one.

Source: the classes, KIPs and issues of each row, read in the sources of 3.9.2, 4.0.1, 4.1.2, 4.2.1 and 4.3.1,
and asked of the classes of 4.4.0.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import attrs

from broker.releases import Release


@attrs.frozen
class Difference:
    """Describe one difference: first release, source, the file with the rule, and the option to show it."""

    since: Release
    what: str
    source: str
    where: str
    shown_by: str


def _read() -> tuple[Difference, ...]:
    _, *lines = files("broker").joinpath("differences.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(Difference(Release(since), *others) for since, *others in (line.split("\t") for line in lines))


DIFFERENCES: Final[tuple[Difference, ...]] = _read()
"""Every difference, by release."""


def table() -> str:
    """Return the table as text, a line for each difference: since, what, source and the option that shows it."""
    rows = [(row.since.name, row.what, row.source, row.shown_by.replace("`", "")) for row in DIFFERENCES]
    return "\n".join(f"{since}  {what} ({source}); {shown_by}" for since, what, source, shown_by in rows)
