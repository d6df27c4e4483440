"""Show the brokers of one cluster in rack order: a chart of their loads, and a table of their numbers.

One panel each for replicas, leaders and bytes, on a common axis of brokers. The band behind spans what a broker of
that rack holds at best, least to most; it is a line when the two differ by one. A bar is grey; the part above the band
has the accent colour if it is more than the tolerated share of it.

The table holds at most `BROKERS_MAX` rows, the brokers furthest from an equal share; fewer on a page of many clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

import attrs
from markupsafe import Markup

from placement.balance.measures import TOLERANCE
from spark_analysis.report.figure import WIDTH, clipped, figure, line, number, text
from spark_analysis.report.figures import plural
from spark_analysis.report.figures import quantity as shown_quantity
from spark_analysis.report.markup import Content, tag
from spark_analysis.report.model import QUANTITIES, ClusterDetail
from spark_analysis.report.rows import BrokerLoad, RackLoad, Spread

__all__ = ("brokers_of", "load_of")

BROKERS_MAX: Final = 120
BROKERS_OF_MANY_MAX: Final = 30
MANY: Final = 20
LEFT: Final = 112
RIGHT: Final = WIDTH - 2
_PANEL: Final = 84
_GAP: Final = 26
_ID_STEP_MIN: Final = 17  # Below narrower bars a broker's id is turned.
_TURNED_STEP_MIN: Final = 9.0  # Below still narrower ones only some ids are written.
_TURNED: Final = 20  # What turned ids take below the bars.
_RACK_WIDTH_MIN: Final = 26


def load_of(holder: BrokerLoad | RackLoad, quantity: str) -> int | None:
    """Return the replicas, leaders or bytes of a broker or a rack; None if the input does not contain them."""
    columns = {"replicas": holder.replica_count, "leaders": holder.leader_count, "bytes": holder.size_bytes}
    held: int | None = columns[quantity]
    return held


def broker_chart(
    identifier: str,
    brokers: Sequence[BrokerLoad],
    spreads: Sequence[Spread],
    racks: Sequence[RackLoad] = (),
    tolerance: float = TOLERANCE,
) -> Markup | None:
    """Return the chart of `brokers`, in rack order, with a panel for each spread; None without brokers or values."""
    panels = [spread for spread in spreads if any(load_of(broker, spread.quantity) is not None for broker in brokers)]
    if not panels or not brokers:
        return None
    step = (RIGHT - LEFT) / len(brokers)
    drawn: list[Content] = []
    top = 18.0
    bands = [Bands.of(spread, racks, tolerance) for spread in panels]
    for spread, band in zip(panels, bands, strict=True):
        drawn.append(_panel(brokers, spread, band, top, step))
        top += _PANEL + _GAP
    bottom = top - _GAP
    drawn.append(_rack_axis(brokers, bottom, step))
    drawn.append(_names(brokers, panels, bottom, step))
    return figure(
        identifier,
        "Load of each broker, in rack order",
        "; ".join(_in_words(spread, _ends(brokers, band)) for spread, band in zip(panels, bands, strict=True)),
        bottom + 56 + (_TURNED if step < _ID_STEP_MIN else 0),
        *drawn,
    )


def _ends(brokers: Sequence[BrokerLoad], band: Bands) -> tuple[int, int]:
    """Return the lowest and the highest end of all bands."""
    ends = [band.at(broker.rack) for broker in brokers if not broker.fenced] or [band.equal]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _in_words(spread: Spread, ends: tuple[int, int]) -> str:
    low, high = ends
    return (
        f"{spread.quantity}: from {shown_quantity(spread.min, spread.quantity)} to "
        f"{shown_quantity(spread.max, spread.quantity)}, broker {spread.max_group} highest; best possible "
        f"{shown_quantity(low, spread.quantity)} to {shown_quantity(high, spread.quantity)}"
    )


@attrs.frozen
class Bands:
    """Hold the least and the most of an unfenced broker at best, by rack; `equal` where racks make no difference."""

    equal: tuple[int, int]
    by_rack: Mapping[str | None, tuple[int, int]]
    tolerance: float

    @classmethod
    def of(cls, spread: Spread, racks: Sequence[RackLoad] = (), tolerance: float = TOLERANCE) -> Bands:
        """Return the bands of a spread over brokers: from the table of racks, else floor and ceiling of the mean."""
        groups = max(1, spread.group_count)
        by_rack = {rack.rack: ends for rack in racks if (ends := _best_of(rack, spread.quantity)) is not None}
        return cls((spread.total // groups, -(-spread.total // groups)), by_rack, tolerance)

    def at(self, rack: str | None) -> tuple[int, int]:
        """Return the least and most that a broker of this rack holds at best."""
        return self.by_rack.get(rack, self.equal)

    def is_over(self, broker: BrokerLoad, load: int | None) -> bool:
        """Return whether an unfenced broker's load exceeds its best range by more than the tolerance."""
        return load is not None and not broker.fenced and load > self.at(broker.rack)[1] * (1 + self.tolerance)

    def distance(self, broker: BrokerLoad, load: int) -> int:
        """Return how far a broker's load is outside its best range."""
        low, high = self.at(broker.rack)
        return max(load - high, low - load, 0)


def _best_of(rack: RackLoad, quantity: str) -> tuple[int, int] | None:
    least, most = {
        "replicas": (rack.replica_count_best_min, rack.replica_count_best_max),
        "leaders": (rack.leader_count_best_min, rack.leader_count_best_max),
        "bytes": (rack.size_bytes_best_min, rack.size_bytes_best_max),
    }[quantity]
    return None if least is None or most is None else (least, most)


def _panel(brokers: Sequence[BrokerLoad], spread: Spread, band: Bands, top: float, step: float) -> Markup:
    base = top + _PANEL
    ends = _ends(brokers, band)
    peak = max(1, ends[1], *(load_of(broker, spread.quantity) or 0 for broker in brokers))
    scale = _PANEL / peak
    bars: dict[str, list[str]] = {"load": [], "load fenced": [], "excess": []}
    for place, broker in enumerate(brokers):
        load = load_of(broker, spread.quantity) or 0
        x = number(LEFT + (place + 0.5) * step)
        over, high = band.is_over(broker, load), band.at(broker.rack)[1]
        if load:
            kind = "load fenced" if broker.fenced else "load"
            bars[kind].append(f"M{x} {number(base)}V{number(base - (min(load, high) if over else load) * scale)}")
        if over:
            bars["excess"].append(f"M{x} {number(base - high * scale)}V{number(base - load * scale)}")
    width = number(max(0.6, min(40.0, step * 0.72)))
    return tag(
        "g",
        text(LEFT, top - 6, spread.quantity, class_="strong"),
        *_band_rects(brokers, band, base, scale, step),
        *(tag("path", d="".join(parts), stroke_width=width, class_=kind) for kind, parts in bars.items() if parts),
        line(LEFT, base, RIGHT, base, "axis"),
        *_value_axis(spread, ends, peak, base, scale),
    )


def _band_rects(brokers: Sequence[BrokerLoad], band: Bands, base: float, scale: float, step: float) -> list[Content]:
    """Return a rectangle for each run of brokers with the same best range."""
    drawn: list[Content] = []
    start = 0
    for (low, high), members in groupby(brokers, key=lambda broker: band.at(broker.rack)):
        size = len(list(members))
        drawn.append(
            tag(
                "rect",
                x=number(LEFT + start * step),
                y=number(base - high * scale),
                width=number(size * step),
                height=number(max(1.5, (high - low) * scale)),
                class_="band",
            )
        )
        start += size
    return drawn


def _value_axis(spread: Spread, ends: tuple[int, int], peak: int, base: float, scale: float) -> list[Content]:
    low, high = ends
    best_y = base - high * scale
    ticks: list[Content] = [text(LEFT - 6, base + 4, "0", anchor="end", class_="quiet")]
    if base - best_y > 14:
        label = f"best {shown_quantity(high, spread.quantity)}" if high - low <= 1 or spread.quantity == "bytes" else ""
        label = label or f"best {shown_quantity(low, spread.quantity)} to {shown_quantity(high, spread.quantity)}"
        ticks.append(text(LEFT - 6, best_y + 4, label, anchor="end", class_="best-label"))
    if best_y - (base - peak * scale) > 14:
        most = shown_quantity(peak, spread.quantity)
        ticks.append(text(LEFT - 6, base - peak * scale + 4, most, anchor="end", class_="quiet"))
    return ticks


def _names(brokers: Sequence[BrokerLoad], panels: Sequence[Spread], bottom: float, step: float) -> Markup:
    """Return an unseen bar over all panels for each broker, whose title names the broker and its loads."""
    bars = []
    for place, broker in enumerate(brokers):
        rack = "" if broker.rack is None else f" ({broker.rack})"
        loads = [(load_of(broker, panel.quantity), panel.quantity) for panel in panels]
        said = ", ".join(
            shown_quantity(load, name) if name == "bytes" else plural(load, name.removesuffix("s"))
            for load, name in loads
            if load is not None
        )
        title = tag("title", ", ".join((f"broker {broker.broker_id}{rack}: {said}", *broker.states)))
        bars.append(tag("path", title, d=f"M{number(LEFT + (place + 0.5) * step)} 16V{number(bottom)}"))
    return tag("g", *bars, class_="names", stroke_width=number(step))


def _broker_ids(brokers: Sequence[BrokerLoad], bottom: float, step: float) -> list[Content]:
    """Return the ids below the bars: level where there is room, else turned; of very many brokers only some."""
    drawn: list[Content] = []
    each = max(1, -(-_TURNED_STEP_MIN // step)) if step < _TURNED_STEP_MIN else 1
    for place, broker in enumerate(brokers):
        x = LEFT + (place + 0.5) * step
        shown = clipped(str(broker.broker_id), max(2, int(step / 6)) if step >= _ID_STEP_MIN else 6)
        if step >= _ID_STEP_MIN:
            drawn.append(text(x, bottom + 14, shown, anchor="middle", class_="quiet"))
        elif place % each == 0:
            turned = f"translate({number(x + 4)} {number(bottom + 5)}) rotate(-90)"
            drawn.append(tag("text", shown, transform=turned, text_anchor="end", class_="quiet small"))
    return drawn


def _rack_axis(brokers: Sequence[BrokerLoad], bottom: float, step: float) -> Markup:
    drawn: list[Content] = []
    drawn += _broker_ids(brokers, bottom, step)
    bottom += _TURNED if step < _ID_STEP_MIN else 0
    start = 0
    for rack, members in groupby(brokers, key=lambda broker: broker.rack):
        size = len(list(members))
        left, right = LEFT + start * step, LEFT + (start + size) * step
        if start:
            drawn.append(line(left, 16, left, bottom + 32, "grid"))
        if right - left >= _RACK_WIDTH_MIN:
            name = "no rack" if rack is None else rack
            drawn.append(text((left + right) / 2, bottom + 30, clipped(name, int((right - left) / 7)), anchor="middle"))
        start += size
    order = "brokers, by id" if all(broker.rack is None for broker in brokers) else "brokers, in rack order"
    drawn.append(text((LEFT + RIGHT) / 2, bottom + 50, order, anchor="middle", class_="quiet"))
    return tag("g", *drawn)


@attrs.frozen
class ShownBrokers:
    """The brokers of one cluster as the page shows them; `more` says which ones are in the table, if not all."""

    chart: Markup | None
    brokers: Sequence[BrokerLoad]
    known: Sequence[str]
    bands: Mapping[str, Bands]
    missing: bool
    states: Sequence[str]
    more: str

    @property
    def heads(self) -> str:
        """Return the heads of the table."""
        state = self.states[0] if len(self.states) == 1 else "state"
        missing = "|#missing from ISRs" if self.missing else ""
        loads = "".join(f"|#{name}" for name in self.known)
        return f"#broker|rack{loads}{missing}" + (f"|{state}" if self.states else "")


def brokers_of(detail: ClusterDetail, shown_count: int, tolerance: float) -> ShownBrokers:
    """Return what to show of the brokers; the more clusters are shown in full, `shown_count`, the shorter the table."""
    found = {spread.quantity: spread for spread in detail.spreads if spread.scope == "broker"}
    spreads = [found[name] for name in QUANTITIES if name in found]
    rows_max = BROKERS_MAX if shown_count <= MANY else BROKERS_OF_MANY_MAX
    bands = {spread.quantity: Bands.of(spread, detail.racks, tolerance) for spread in spreads}
    brokers = shown = detail.brokers
    if len(brokers) > rows_max:
        means = [(spread.quantity, max(spread.mean, 1e-9)) for spread in spreads]
        furthest = sorted(brokers, key=lambda broker: (_order(broker, means, bands), broker.broker_id))[:rows_max]
        chosen = {broker.broker_id for broker in furthest}
        shown = tuple(broker for broker in brokers if broker.broker_id in chosen)
    missing = any(broker.missing_from_isr_count for broker in brokers)
    first = "missing from most ISRs or furthest" if missing else "furthest"
    return ShownBrokers(
        chart=broker_chart(detail.row.anchor, brokers, spreads, detail.racks, tolerance),
        brokers=shown,
        known=[name for name in QUANTITIES if any(load_of(broker, name) is not None for broker in brokers)],
        bands=bands,
        missing=missing,
        states=sorted({state for broker in brokers for state in broker.states}),
        more=f"; the {rows_max} {first} from their share" if len(shown) < len(brokers) else "",
    )


def _deviation(broker: BrokerLoad, means: Sequence[tuple[str, float]]) -> float:
    return max((abs((load_of(broker, name) or 0) - mean) / mean for name, mean in means), default=0.0)


def _order(broker: BrokerLoad, means: Sequence[tuple[str, float]], bands: Mapping[str, Bands]) -> tuple[float, ...]:
    """Return what sorts brokers: missing from most ISRs first, then furthest from their best, then from the mean."""
    outside = max((bands[name].distance(broker, load_of(broker, name) or 0) / mean for name, mean in means), default=0)
    return -(broker.missing_from_isr_count or 0), -outside, -_deviation(broker, means)
