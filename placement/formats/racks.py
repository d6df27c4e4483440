"""Read the racks of brokers from a separate file, because most dumps contain none.

A racks file is the user's own, so no line is rejected: the first mistake is an InputError that names the line and the
value. Source: Kafka broker.rack; JSON as in kafka-reassign-partitions wrappers that call it rackByBroker.
"""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from broker.errors import InputError
from broker.ids import INT32_MAX, BrokerId
from broker.wording import listed
from placement.formats.csv_line import csv_rows, own_text
from placement.formats.documents import check_objects, plain

RACKS_BYTES_MAX: Final = 64 << 20  # A million brokers; no racks file is larger.
_NAMES_SHOWN_MAX: Final = 10
_HEADINGS: Final = (("broker", "rack"), ("cluster", "broker", "rack"))


@attrs.frozen
class Racks:
    """Hold racks by broker: `common` applies to every cluster, `by_cluster` to the named one and takes precedence."""

    common: tuple[tuple[BrokerId, str], ...] = ()
    by_cluster: tuple[tuple[str, tuple[tuple[BrokerId, str], ...]], ...] = ()

    def for_cluster(self, *names: str) -> tuple[tuple[BrokerId, str], ...]:
        """Return the racks of the cluster that has these names, by broker id; the first one in the file counts."""
        of_clusters = dict(self.by_cluster)
        own = next((of_clusters[name] for name in names if name in of_clusters), ())
        return tuple(sorted((dict(self.common) | dict(own)).items()))

    def missing(self, *names: str) -> str | None:
        """Return in words that the clusters of the file have none of these names; None where it gives racks.

        Without names, the brokers are of no cluster that could be named.
        """
        if self.for_cluster(*names):
            return None
        shown = [repr(name) for name, _ in self.by_cluster[:_NAMES_SHOWN_MAX]]
        whose = f"cluster {names[0]!r}" if names else "brokers without a cluster"
        way = "NAME=DUMP gives a dump such a name" if names else "lines broker,rack are of every cluster"
        return (
            f"the racks file gives none to {whose}; its clusters are {listed(shown, len(self.by_cluster))}, and {way}"
        )


@attrs.define
class _Gathered:
    source: str
    racks: dict[str | None, dict[int, str]] = attrs.field(factory=dict)

    def add(self, cluster: str | None, broker: str, rack: Any, line: int | None) -> None:
        identity = int(broker) if broker.isascii() and broker.isdigit() and len(broker) <= 10 else -1
        if not 0 <= identity <= INT32_MAX:
            what = f"a broker id is not a whole number from 0 to {INT32_MAX}"
            raise InputError(what, source=self.source, line=line, value=broker)
        named = plain(rack)
        if named is None or not named.strip() or len(rack) > 249:
            what = f"the rack of broker {identity} is not a text of 1 to 249 characters"
            raise InputError(what, source=self.source, line=line, value=str(rack)[:80])
        known = self.racks.setdefault(cluster, {})
        if known.setdefault(identity, named) != named:
            what = f"broker {identity} already stands in rack {known[identity]!r}"
            raise InputError(what, source=self.source, line=line, value=named)

    def finished(self) -> Racks:
        if not self.racks:
            raise InputError("the racks file names no broker", source=self.source)
        ordered = {
            cluster: tuple((BrokerId(broker), racks[broker]) for broker in sorted(racks))
            for cluster, racks in self.racks.items()
        }
        common = ordered.pop(None, ())
        return Racks(
            common, tuple((cluster, ordered[cluster]) for cluster in sorted(c for c in ordered if c is not None))
        )


def read_racks(data: bytes, *, source: str) -> Racks:
    """Return the racks in a file's bytes; raise InputError at the first mistake."""
    text = own_text(data, "racks", size_bytes_max=RACKS_BYTES_MAX, source=source)
    gathered = _Gathered(source)
    if text.lstrip().startswith(("{", "[")):
        _read_json(text, gathered)
    else:
        _read_csv(text, gathered)
    return gathered.finished()


def _read_json(text: str, gathered: _Gathered) -> None:
    check_objects(text, source=gathered.source)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"the JSON is damaged at column {error.colno}: {error.msg}"
        raise InputError(what, source=gathered.source, line=error.lineno) from None
    except (RecursionError, ValueError):
        raise InputError("the JSON is nested too deeply or holds a number too long", source=gathered.source) from None
    if isinstance(value, dict) and isinstance(value.get("rackByBroker"), dict):
        value = value["rackByBroker"]
    if not isinstance(value, dict):
        raise InputError("the JSON is not a map of brokers to racks", source=gathered.source, value=text.strip()[:80])
    for key, item in value.items():
        if isinstance(item, dict):
            for broker, rack in item.items():
                gathered.add(key, broker, rack, None)
        else:
            gathered.add(None, key, item, None)


def _read_csv(text: str, gathered: _Gathered) -> None:
    headed = False
    for number, line, fields in csv_rows(text, source=gathered.source):
        if not headed and tuple(field.lower() for field in fields) in _HEADINGS:
            headed = True
            continue
        headed = True
        if len(fields) not in (2, 3):
            what = "a line of a racks file is broker,rack or cluster,broker,rack"
            raise InputError(what, source=gathered.source, line=number, value=line.strip())
        gathered.add(fields[0] if len(fields) == 3 else None, fields[-2], fields[-1], number)
