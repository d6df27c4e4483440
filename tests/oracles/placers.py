"""Small readable twins of Kafka's two placers, for searching the bounds of what a call gives a broker.

They follow the rules as sentences, with lists and loops, and know nothing of the product. Chance
comes as a function `draw(bound)`. The striped twin visits racks in order of name where Kafka takes
Java's hash order: with one rack it is Kafka's own answer, with several it is one of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Draw = Callable[[int], int]


def classic(
    brokers: Sequence[tuple[int, str | None]], partitions: int, factor: int, *, start: int, shift: int, first: int = 0
) -> list[list[int]]:
    """Replicas of partitions first, first + 1, …; racks are used when every broker has one."""
    ring = list(brokers)
    rack_count = len({rack for _, rack in ring})
    racked = all(rack is not None for _, rack in ring)
    if racked:
        ring = _alternated(ring)
    rows = []
    size = len(ring)
    for partition in range(first, first + partitions):
        if partition > 0 and partition % size == 0:
            shift += 1
        lead = (partition + start) % size
        rows.append(_classic_row(ring, lead, shift * (rack_count if racked else 1), factor, racked))
    return rows


def _classic_row(ring: list[tuple[int, str | None]], lead: int, shift: int, factor: int, racked: bool) -> list[int]:
    size = len(ring)
    chosen = [ring[lead]]
    all_racks = {rack for _, rack in ring}
    step = 0
    while len(chosen) < factor:
        broker = ring[(lead + 1 + (shift + step) % (size - 1)) % size]
        step += 1
        used_racks = {rack for _, rack in chosen}
        if racked and (broker in chosen or (broker[1] in used_racks and used_racks != all_racks)):
            continue
        chosen.append(broker)
    return [number for number, _ in chosen]


def _alternated(brokers: list[tuple[int, str | None]]) -> list[tuple[int, str | None]]:
    # Java compares strings by UTF-16 unit.
    racks = sorted({str(rack) for _, rack in brokers}, key=lambda name: name.encode("utf-16-be"))
    queues = [sorted(broker for broker in brokers if broker[1] == rack) for rack in racks]
    ring = []
    while any(queues):
        for queue in queues:
            if queue:
                ring.append(queue.pop(0))
    return ring


class _Ring:
    """Brokers of one rack in one state: each once per round, rounds starting one place further each time."""

    def __init__(self, brokers: list[int], draw: Draw) -> None:
        self.brokers = sorted(brokers)
        self.offset = draw(len(brokers)) if brokers else 0
        self.index = 0
        self.round = 0

    def next(self, round_number: int) -> int | None:
        if not self.brokers:
            return None
        if self.round != round_number:
            self.round, self.index = round_number, 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.index == len(self.brokers):
            return None
        broker = self.brokers[(self.offset + self.index) % len(self.brokers)]
        self.index += 1
        return broker

    def shuffle(self, draw: Draw) -> None:
        _shuffle(self.brokers, draw)


def _shuffle(items: list[Any], draw: Draw) -> None:
    for size in range(len(items), 1, -1):
        other = draw(size)
        items[size - 1], items[other] = items[other], items[size - 1]


def striped(
    brokers: Sequence[tuple[int, str | None, bool]], partitions: int, factor: int, draw: Draw
) -> list[list[int]]:
    """Replicas as the KRaft controller places them: (id, rack, fenced) brokers, at least one of them unfenced."""
    racks = sorted({rack or "" for _, rack, _ in brokers})
    fenced = {r: _Ring([b for b, rack, out in brokers if (rack or "") == r and out], draw) for r in racks}
    active = {r: _Ring([b for b, rack, out in brokers if (rack or "") == r and not out], draw) for r in racks}
    order = list(racks)
    offset = draw(len(order))
    unfenced = sum(not out for _, _, out in brokers)
    epoch = 0
    rows = []
    for _ in range(partitions):
        if epoch == unfenced and unfenced > 1:
            _shuffle(order, draw)
            for rack in racks:
                fenced[rack].shuffle(draw)
                active[rack].shuffle(draw)
            epoch = 0
        rows.append(_striped_row(order, offset, active, fenced, epoch, factor))
        epoch += 1
        offset = (offset + 1) % len(order)
    return rows


def _striped_row(
    order: list[str], offset: int, active: dict[str, _Ring], fenced: dict[str, _Ring], epoch: int, factor: int
) -> list[int]:
    at = offset
    lead = active[order[at]].next(epoch)
    while lead is None:
        at = (at + 1) % len(order)
        lead = active[order[at]].next(epoch)
    row, skip, leads_rack = [lead], True, order[at]
    at = offset
    while len(row) < factor:
        rack = order[at]
        at = (at + 1) % len(order)
        if skip and rack == leads_rack:
            skip = False
            continue
        broker = active[rack].next(epoch)
        if broker is None:
            broker = fenced[rack].next(epoch)
        if broker is not None:
            row.append(broker)
    return row
