"""Show the brokers of one cluster: a chart of all of them, and a table of their numbers.

What it decides: the table holds at most `BROKERS_MAX` rows, the brokers furthest from an equal share; fewer on a page
of many clusters, where these rows would be half of the page.

Example: "100 brokers in numbers; the 30 furthest from their share".

Left out: the other brokers' numbers, which are in the Parquet table `brokers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from broker.drawing.element import Markup, tag
from placement.balance.measures import TOLERANCE
from spark_analysis.report.broker_chart import Bands, broker_chart, load_of
from spark_analysis.report.figures import count, plural, quantity
from spark_analysis.report.model import QUANTITIES, ClusterDetail
from spark_analysis.report.parts import Cell, Header, chart_box, folded, note, table
from spark_analysis.report.rows import BrokerLoad, RackLoad, Spread

BROKERS_MAX: Final = 120
BROKERS_OF_MANY_MAX: Final = 30
MANY: Final = 20


def _over_brokers(detail: ClusterDetail) -> list[Spread]:
    found = {spread.quantity: spread for spread in detail.spreads if spread.scope == "broker"}
    return [found[name] for name in QUANTITIES if name in found]


def brokers_part(detail: ClusterDetail, *, shown_count: int, tolerance: float = TOLERANCE) -> Markup | None:
    """Return the chart and the table of one cluster's brokers.

    The more clusters are shown in full, `shown_count`, the shorter the table. Loads more than `tolerance` above the
    best are marked.
    """
    if not detail.brokers:
        return None
    spreads = _over_brokers(detail)
    rows_max = BROKERS_MAX if shown_count <= MANY else BROKERS_OF_MANY_MAX
    bands = {spread.quantity: Bands.of(spread, detail.racks, tolerance) for spread in spreads}
    drawn = broker_chart(detail.row.anchor, detail.brokers, spreads, detail.racks, tolerance)
    chart = None
    if drawn is not None:
        fenced = " Paler bars are fenced brokers." if any(broker.fenced for broker in detail.brokers) else ""
        chart = tag(
            "figure",
            chart_box(drawn, "Chart of the brokers"),
            note(
                "The green band is what a broker holds at best, without breaking the rack rule (for bytes, a bound); "
                f"what stands more than {100 * tolerance:g} % above it is in the accent colour. Resting on "
                f"a bar names its broker.{fenced}"
            ),
        )
    return tag("div", tag("h4", "Brokers"), chart, _broker_table(detail, spreads, bands, rows_max))


def _broker_table(
    detail: ClusterDetail, spreads: Sequence[Spread], bands: Mapping[str, Bands], rows_max: int
) -> Markup:
    brokers = detail.brokers
    shown = list(brokers)
    if len(shown) > rows_max:
        means = [(spread.quantity, max(spread.mean, 1e-9)) for spread in spreads]
        furthest = sorted(shown, key=lambda broker: (_order(broker, means, bands), broker.broker_id))[:rows_max]
        chosen = {broker.broker_id for broker in furthest}
        shown = [broker for broker in shown if broker.broker_id in chosen]
    known = [
        name
        for name in ("replicas", "leaders", "bytes")
        if any(load_of(broker, name) is not None for broker in brokers)
    ]
    states = sorted({state for broker in brokers for state in broker.states})
    missing = any(broker.missing_from_isr_count for broker in brokers)
    headers = [Header("broker", "num"), Header("rack"), *(Header(name, "num") for name in known)]
    if missing:
        headers.append(Header("missing from ISRs", "num"))
    if states:
        headers.append(Header(states[0] if len(states) == 1 else "state"))
    rows = [
        [
            str(broker.broker_id),
            broker.rack if broker.rack is not None else "–",
            *(load_cell(broker, name, bands.get(name)) for name in known),
            *((_missing_cell(broker),) if missing else ()),
            *((", ".join(broker.states),) if states else ()),
        ]
        for broker in shown
    ]
    first = "missing from most ISRs or furthest" if missing else "furthest"
    more = f"; the {rows_max} {first} from their share" if len(shown) < len(brokers) else ""
    title = f"{plural(len(brokers), 'broker')} in numbers{more}"
    return folded(title, table("Brokers, in rack order", headers, rows, sortable=True))


def _missing_cell(broker: BrokerLoad) -> Cell:
    return Cell(count(broker.missing_from_isr_count), alert=bool(broker.missing_from_isr_count))


def _deviation(broker: BrokerLoad, means: Sequence[tuple[str, float]]) -> float:
    return max((abs((load_of(broker, name) or 0) - mean) / mean for name, mean in means), default=0.0)


def _order(broker: BrokerLoad, means: Sequence[tuple[str, float]], bands: Mapping[str, Bands]) -> tuple[float, ...]:
    """Return what sorts brokers: missing from most ISRs first, then furthest from their best, then from the mean."""
    outside = max((bands[name].distance(broker, load_of(broker, name) or 0) / mean for name, mean in means), default=0)
    return -(broker.missing_from_isr_count or 0), -outside, -_deviation(broker, means)


def load_cell(holder: BrokerLoad | RackLoad, name: str, band: Bands | None) -> Cell:
    """Return the cell of a broker's or a rack's load, marked when a broker's load is over its band."""
    value = load_of(holder, name)
    order = float(value) if name == "bytes" and value is not None else None
    over = band is not None and isinstance(holder, BrokerLoad) and band.is_over(holder, value)
    return Cell(quantity(value, name), order, alert=over)
