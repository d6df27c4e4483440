"""Read the zones of consumers from a separate file, because no tool prints `client.rack`.

A line is `host,zone` or `client id,zone`, or `cluster,host,zone` for one cluster alone. A name that ends in * stands
for all hosts and client ids that begin so: `billing-east-*,east` or `10.1.*,west`. A host that is named counts before a
client id, both before a beginning, and the longest beginning before shorter ones. The first mistake is an InputError
that names the line and the value. Source: KIP-392 and KIP-881 for client.rack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.errors import InputError
from placement.formats.csv_line import csv_rows, own_text

ZONES_BYTES_MAX: Final = 64 << 20  # A million hosts; no zones file is larger.
ZONE_LENGTH_MAX: Final = 249
_NAMES: Final = ("host", "client_id", "client id", "member")
_ANY: Final = "*"


@attrs.frozen
class MemberZones:
    """Hold the zone of each name, and of each beginning of names, by cluster; None stands for every cluster."""

    named: Mapping[tuple[str | None, str], str]
    beginnings: Mapping[tuple[str | None, str], str]
    lengths: tuple[int, ...]

    def zone_of(self, cluster: str, host: str, client_id: str) -> str | None:
        """Return the zone of a member, None where no line names it; a cluster's own lines come before the others."""
        for of in (cluster, None):
            for name in (host, client_id):
                if (of, name) in self.named:
                    return self.named[of, name]
            for length in self.lengths:
                for name in (host, client_id):
                    if len(name) >= length and (of, name[:length]) in self.beginnings:
                        return self.beginnings[of, name[:length]]
        return None


def read_member_zones(data: bytes, *, source: str) -> MemberZones:
    """Return the zones in a file's bytes; raise InputError at the first mistake."""
    zones: dict[tuple[str | None, str], str] = {}
    headed = False
    text = own_text(data, "zones", size_bytes_max=ZONES_BYTES_MAX, source=source)
    for number, line, fields in csv_rows(text, source=source):
        if not headed and fields[-1].lower() == "zone" and len(fields) > 1 and fields[-2].lower() in _NAMES:
            headed = True
            continue
        headed = True
        _add(zones, fields, source, number, line)
    if not zones:
        raise InputError("the zones file names no host and no client", source=source)
    starts = {(of, name.removesuffix(_ANY)): zone for (of, name), zone in zones.items() if name.endswith(_ANY)}
    lengths = tuple(sorted({len(name) for _, name in starts}, reverse=True))
    return MemberZones({key: zone for key, zone in zones.items() if not key[1].endswith(_ANY)}, starts, lengths)


def _add(
    zones: dict[tuple[str | None, str], str], fields: tuple[str, ...], source: str, number: int, line: str
) -> None:
    if len(fields) not in (2, 3) or not all(fields):
        what = "a line of a zones file is host,zone or client id,zone, or these after a cluster"
        raise InputError(what, source=source, line=number, value=line.strip())
    name, zone = fields[-2].removeprefix("/"), fields[-1]
    if len(zone) > ZONE_LENGTH_MAX:
        raise InputError(f"a zone has more than {ZONE_LENGTH_MAX} characters", source=source, line=number, value=zone)
    known = zones.setdefault((fields[0] if len(fields) == 3 else None, name), zone)
    if known != zone:
        raise InputError(f"{name!r} is in zone {known!r} already", source=source, line=number, value=zone)
