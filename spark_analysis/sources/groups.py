"""Read files of what kafka-consumer-groups --describe printed, and files of the zones of consumers.

Constraints: a file is held whole; it may have `GROUPS_BYTES_MAX` bytes, decompressed.

Source: placement/formats/group_tables.py.
"""

from __future__ import annotations

from typing import Final

from placement.formats.group_tables import GroupTables, read_group_tables
from placement.formats.member_zones import ZONES_BYTES_MAX, MemberZones, read_member_zones
from placement.formats.text import escaped
from spark_analysis.sources.files import read_small_file

GROUPS_BYTES_MAX: Final = 256 << 20  # More than a million partitions of groups, a line each.


def read_groups(path: str, *, source: str | None = None) -> GroupTables:
    """Return the groups in a file; raise InputError if it cannot be used. `source` is what errors call it."""
    data = read_small_file(path, size_bytes_max=GROUPS_BYTES_MAX)
    return read_group_tables(escaped(data), source=source or path)


def read_zones(path: str) -> MemberZones:
    """Return the zones in a file; raise InputError if it cannot be used."""
    return read_member_zones(read_small_file(path, size_bytes_max=ZONES_BYTES_MAX), source=path)
