"""Draw the load of each broker of one cluster in rack order, with the range of equal shares behind the bars.

What it decides: one panel each for replicas, leaders and bytes, on a common axis of brokers. A bar up to the ceiling of
total / brokers is grey, the part above it has the accent colour: the coloured part is what would have to move. The band
behind spans floor to ceiling; it is a line when the two differ by one.

How: the bars of a panel are at most three paths, not an element a broker; a hundred brokers take two kilobytes.

Left out: exact values, which stand in the table of brokers under the chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from broker.drawing.element import Content, Markup, tag
from broker.drawing.figure import WIDTH, figure, line, text
from broker.drawing.scale import clipped, number
from spark_analysis.report.figures import quantity as shown_quantity
from spark_analysis.report.model import BrokerLoad, RackLoad, Spread

LEFT: Final = 112
RIGHT: Final = WIDTH - 2
_PANEL: Final = 84
_GAP: Final = 26
_ID_STEP_MIN: Final = 17  # Narrower bars have no room for a broker's id below them.
_RACK_WIDTH_MIN: Final = 26


def load_of(holder: BrokerLoad | RackLoad, quantity: str) -> int | None:
    """Return the replicas, leaders or bytes of a broker or a rack; None if the input does not contain them."""
    return {"replicas": holder.replica_count, "leaders": holder.leader_count, "bytes": holder.size_bytes}[quantity]


def broker_chart(identifier: str, brokers: Sequence[BrokerLoad], spreads: Sequence[Spread]) -> Markup | None:
    """Return the chart of `brokers`, in rack order, with a panel for each spread; None without brokers or values."""
    panels = [spread for spread in spreads if any(load_of(broker, spread.quantity) is not None for broker in brokers)]
    if not panels or not brokers:
        return None
    step = (RIGHT - LEFT) / len(brokers)
    drawn: list[Content] = []
    top = 18.0
    for spread in panels:
        drawn.append(_panel(brokers, spread, top, step))
        top += _PANEL + _GAP
    bottom = top - _GAP
    drawn.append(_rack_axis(brokers, bottom, step))
    return figure(
        identifier,
        "Load of each broker, in rack order",
        "; ".join(_in_words(spread) for spread in panels),
        bottom + 56,
        *drawn,
    )


def _in_words(spread: Spread) -> str:
    low, high = band(spread)
    return (
        f"{spread.quantity}: from {shown_quantity(spread.min, spread.quantity)} to "
        f"{shown_quantity(spread.max, spread.quantity)}, broker {spread.max_group} highest; best possible "
        f"{shown_quantity(low, spread.quantity)} to {shown_quantity(high, spread.quantity)}"
    )


def band(spread: Spread) -> tuple[int, int]:
    """Return floor and ceiling of total / groups, the range of an equal share."""
    groups = max(1, spread.group_count)
    return spread.total // groups, -(-spread.total // groups)


def _panel(brokers: Sequence[BrokerLoad], spread: Spread, top: float, step: float) -> Markup:
    base = top + _PANEL
    low, high = band(spread)
    peak = max(1, high, *(load_of(broker, spread.quantity) or 0 for broker in brokers))
    scale = _PANEL / peak
    bars: dict[str, list[str]] = {"load": [], "load fenced": [], "excess": []}
    for place, broker in enumerate(brokers):
        load = load_of(broker, spread.quantity) or 0
        x = number(LEFT + (place + 0.5) * step)
        if load:
            kind = "load fenced" if broker.fenced else "load"
            bars[kind].append(f"M{x} {number(base)}V{number(base - min(load, high) * scale)}")
        if load > high:
            bars["excess"].append(f"M{x} {number(base - high * scale)}V{number(base - load * scale)}")
    width = number(max(0.6, min(40.0, step * 0.72)))
    band_height = max(1.5, (high - low) * scale)
    return tag(
        "g",
        text(LEFT, top - 6, spread.quantity, class_="strong"),
        tag(
            "rect",
            x=LEFT,
            y=number(base - high * scale),
            width=number(RIGHT - LEFT),
            height=number(band_height),
            class_="band",
        ),
        *(tag("path", d="".join(parts), stroke_width=width, class_=kind) for kind, parts in bars.items() if parts),
        line(LEFT, base, RIGHT, base, "axis"),
        *_value_axis(spread, high, peak, base, scale),
    )


def _value_axis(spread: Spread, high: int, peak: int, base: float, scale: float) -> list[Content]:
    best_y = base - high * scale
    ticks: list[Content] = [text(LEFT - 6, base + 4, "0", anchor="end", class_="quiet")]
    if base - best_y > 14:
        label = f"best {shown_quantity(high, spread.quantity)}"
        ticks.append(text(LEFT - 6, best_y + 4, label, anchor="end", class_="best-label"))
    if best_y - (base - peak * scale) > 14:
        most = shown_quantity(peak, spread.quantity)
        ticks.append(text(LEFT - 6, base - peak * scale + 4, most, anchor="end", class_="quiet"))
    return ticks


def _rack_axis(brokers: Sequence[BrokerLoad], bottom: float, step: float) -> Markup:
    drawn: list[Content] = []
    if step >= _ID_STEP_MIN:
        for place, broker in enumerate(brokers):
            x = LEFT + (place + 0.5) * step
            drawn.append(
                text(
                    x,
                    bottom + 14,
                    clipped(str(broker.broker_id), max(2, int(step / 6))),
                    anchor="middle",
                    class_="quiet",
                )
            )
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
