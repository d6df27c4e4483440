"""Read the capacities of brokers from a separate file: disk bytes, network bytes a second, producers' bytes a second.

The first mistake is an InputError that names the line or the broker, and the value.

    >>> found = read_capacities(b"broker,disk_bytes,ingress\\n-1,1000,\\n3,2000,50\\n", source="capacity.csv")
    >>> found.of(BrokerId(3)).disk_bytes, found.of(BrokerId(3)).ingress_bytes_per_second
    (2000, 50)
    >>> found.of(BrokerId(8)).disk_bytes, found.of(BrokerId(8)).ingress_bytes_per_second
    (1000, None)

Source: Cruise Control BrokerCapacityConfigFileResolver (DISK in MB, NW_IN and NW_OUT in KB/s, broker -1 the default).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import SIZE_UNKNOWN, ClusterView, Int64Array
from broker.errors import InputError
from broker.ids import INT32_MAX, BrokerId
from broker.units import KIB, MIB, SIZE_BYTES_MAX
from placement.balance.loads import loads
from placement.formats.csv_line import csv_rows, own_text
from placement.formats.documents import brief, find_documents

CAPACITY_BYTES_MAX: Final = 64 << 20  # A million brokers; no capacity file is larger.
EVERY_OTHER_BROKER: Final = -1
COLUMNS: Final = ("broker", "disk_bytes", "network_in", "network_out", "free_bytes", "ingress")
_WITHOUT_HEADING: Final = COLUMNS[:4]


@attrs.frozen(kw_only=True)
class LogDirCapacity:
    """Hold the bytes of the disk behind one log directory."""

    path: str
    disk_bytes: int


@attrs.frozen(kw_only=True)
class Capacity:
    """Hold the capacities of one broker; an unknown capacity is None.

    `free_disk_bytes` is given where more than Kafka's replicas stands on the disk. `ingress_bytes_per_second` is the
    rate at which clients produce to partitions that the broker holds, as leader or follower.
    """

    disk_bytes: int | None = None
    free_disk_bytes: int | None = None
    network_in_bytes_per_second: int | None = None
    network_out_bytes_per_second: int | None = None
    ingress_bytes_per_second: int | None = None
    log_dirs: tuple[LogDirCapacity, ...] = ()


UNKNOWN: Final = Capacity()


@attrs.frozen
class Capacities:
    """Hold the capacities of the brokers of one cluster; `default` is that of brokers the file does not name."""

    by_broker: tuple[tuple[BrokerId, Capacity], ...] = ()
    default: Capacity = UNKNOWN

    def of(self, broker_id: BrokerId) -> Capacity:
        """Return the capacity of a broker: its own, or the default."""
        return dict(self.by_broker).get(broker_id, self.default)

    def column(self, view: ClusterView, field: str) -> Int64Array:
        """Return one field of `Capacity` for the brokers of `view` in their order, int64[B], -1 where not known."""
        own = dict(self.by_broker)
        found = (getattr(own.get(broker.id, self.default), field) for broker in view.brokers)
        return np.array([SIZE_UNKNOWN if value is None else value for value in found], dtype=np.int64)

    def free_disk_bytes(self, view: ClusterView) -> Int64Array:
        """Return the free disk bytes of the brokers of `view`, int64[B], -1 where not known.

        Where the file does not state it, it is the disk less the bytes of the broker's replicas, at least 0.
        """
        given, disk = self.column(view, "free_disk_bytes"), self.column(view, "disk_bytes")
        held = loads(view).brokers.size_bytes
        if held is None:
            return given
        return np.where((given < 0) & (disk >= 0), np.maximum(disk - held, 0), given)


@attrs.define
class _Gathered:
    source: str
    by_broker: dict[int, Capacity] = attrs.field(factory=dict)

    def add(self, broker: Any, capacity: Capacity, line: int | None) -> None:
        text = str(broker).strip() if isinstance(broker, int | str) and not isinstance(broker, bool) else ""
        digits = text.removeprefix("-")
        number = int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 10 else -2
        if not EVERY_OTHER_BROKER <= number <= INT32_MAX:
            what = f"a broker id is not a whole number from 0 to {INT32_MAX}, nor -1 for every other broker"
            raise InputError(what, source=self.source, line=line, value=brief(broker))
        if number in self.by_broker:
            raise InputError(f"broker {number} has a capacity already", source=self.source, line=line)
        self.by_broker[number] = capacity

    def finished(self) -> Capacities:
        if not self.by_broker:
            raise InputError("the capacity file names no broker", source=self.source)
        default = self.by_broker.pop(EVERY_OTHER_BROKER, UNKNOWN)
        return Capacities(tuple((BrokerId(key), self.by_broker[key]) for key in sorted(self.by_broker)), default)


def read_capacities(data: bytes, *, source: str) -> Capacities:
    """Return the capacities in a file's bytes; raise InputError at the first mistake."""
    text = own_text(data, "capacity", size_bytes_max=CAPACITY_BYTES_MAX, source=source)
    gathered = _Gathered(source)
    if text.lstrip().startswith(("{", "[")):
        _read_json(text, gathered)
    else:
        _read_csv(text, gathered)
    return gathered.finished()


def _read_json(text: str, gathered: _Gathered) -> None:
    documents = find_documents(text, source=gathered.source).documents
    entries = documents[0].value.get("brokerCapacities") if len(documents) == 1 else None
    if not isinstance(entries, list):
        what = 'the JSON is not one object with a list "brokerCapacities", as in Cruise Control\'s capacity.json'
        raise InputError(what, source=gathered.source, value=text.strip()[:80])
    for number, entry in enumerate(entries):
        where = f"brokerCapacities[{number}]"
        capacity = entry.get("capacity") if isinstance(entry, dict) else None
        if not isinstance(capacity, dict):
            raise InputError(f'{where} has no object "capacity"', source=gathered.source, value=brief(entry))
        directories = capacity.get("DISK")
        disks = directories if isinstance(directories, dict) else {"": directories}
        found = {path: _amount(size, f"{where} DISK", MIB, gathered.source) for path, size in disks.items()}
        if not found or (isinstance(directories, dict) and None in found.values()):
            raise InputError(f"{where} DISK names no capacity", source=gathered.source, value=brief(directories))
        known = [size for size in found.values() if size is not None]
        of_broker = Capacity(
            disk_bytes=sum(known) if known else None,
            network_in_bytes_per_second=_amount(capacity.get("NW_IN"), f"{where} NW_IN", KIB, gathered.source),
            network_out_bytes_per_second=_amount(capacity.get("NW_OUT"), f"{where} NW_OUT", KIB, gathered.source),
            log_dirs=tuple(_log_dirs(found)) if isinstance(directories, dict) else (),
        )
        gathered.add(entry.get("brokerId"), of_broker, None)


def _log_dirs(found: dict[str, int | None]) -> Iterator[LogDirCapacity]:
    for path in sorted(found):
        size = found[path]
        if size is not None:
            yield LogDirCapacity(path=path, disk_bytes=size)


def _amount(value: Any, where: str, unit_bytes: int, source: str, line: int | None = None) -> int | None:
    """Return a number, or the text of one, in bytes; None for no value."""
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not 0 <= number * unit_bytes <= SIZE_BYTES_MAX:
        what = f"{where} is not a number from 0 to {SIZE_BYTES_MAX // unit_bytes}"
        raise InputError(what, source=source, line=line, value=brief(value))
    whole = isinstance(value, int) or (isinstance(value, str) and value.strip().isdecimal())
    return int(value) * unit_bytes if whole else min(round(number * unit_bytes), SIZE_BYTES_MAX)


def _read_csv(text: str, gathered: _Gathered) -> None:
    columns: tuple[str, ...] = ()
    for number, line, cells in csv_rows(text, source=gathered.source):
        if not columns:
            columns, headed = _heading(cells, gathered.source, number)
            if headed:
                continue
        if len(cells) < 2 or len(cells) > len(columns):
            what = f"a line of a capacity file is {','.join(columns)}"
            raise InputError(what, source=gathered.source, line=number, value=line.strip())
        row = dict(zip(columns, cells, strict=False))
        amounts = {name: _amount(row.get(name), name, 1, gathered.source, number) for name in COLUMNS[1:]}
        capacity = Capacity(
            disk_bytes=amounts["disk_bytes"],
            free_disk_bytes=amounts["free_bytes"],
            network_in_bytes_per_second=amounts["network_in"],
            network_out_bytes_per_second=amounts["network_out"],
            ingress_bytes_per_second=amounts["ingress"],
        )
        gathered.add(row["broker"], capacity, number)


def _heading(cells: tuple[str, ...], source: str, line: int) -> tuple[tuple[str, ...], bool]:
    """Return the columns of a CSV file, by its first line, and whether that line is a heading."""
    names = tuple(cell.lower() for cell in cells)
    if "broker" not in names:
        return _WITHOUT_HEADING, False
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or len(set(names)) < len(names) or len(names) < 2:
        what = f"the heading is not broker and others of {', '.join(COLUMNS[1:])}, once each"
        raise InputError(what, source=source, line=line, value=",".join(cells))
    return names, True
