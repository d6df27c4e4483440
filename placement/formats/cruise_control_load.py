"""Read Cruise Control's `/load`: total replicas, leaders and megabytes (2^20 bytes) of each broker, and no partition.

Source: Cruise Control BrokerStats and SingleBrokerStats (older versions print no Rack).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from broker.cluster import BrokerTotals, BrokerView, ClusterView
from broker.ids import BrokerId
from broker.units import MIB, SIZE_BYTES_MAX
from placement.formats.checks import fault_of_number
from placement.formats.documents import brief, folded, plain
from placement.formats.parsed import RowCounts, first_few

COUNT_MAX: Final = 2**40  # More replicas on one broker than any cluster has in all.


@attrs.frozen(kw_only=True)
class _Load:
    broker: BrokerView
    replica_count: int
    leader_count: int
    size_bytes: int | None
    state: str


def is_load(value: Any) -> bool:
    """Return whether an object is a load: brokers with counts of replicas."""
    brokers = folded(value).get("brokers")
    return isinstance(brokers, list) and any({"broker", "replicas"} <= folded(item).keys() for item in brokers)


def read_load(
    value: Any, place: str, row_counts: RowCounts, *, name: str, facts: tuple[tuple[str, str], ...] = ()
) -> ClusterView:
    """Return the cluster of one load object; unusable brokers are rejected in `row_counts`."""
    loads: dict[int, _Load] = {}
    for number, raw in enumerate(folded(value)["brokers"]):
        fault, load = _load(folded(raw))
        if load is not None and load.broker.id in loads:
            fault = f"broker {load.broker.id} is already listed"
        if fault or load is None:
            row_counts.reject(f"{place}brokers[{number}]: {fault}", brief(raw))
            continue
        loads[load.broker.id] = load
        row_counts.rows_analysed += 1
    ordered = [loads[identity] for identity in sorted(loads)]
    sizes = [load.size_bytes for load in ordered]
    unwell = [f"broker {load.broker.id} is {load.state}" for load in ordered if load.state not in ("", "ALIVE")]
    return ClusterView(
        name=name,
        source=row_counts.source,
        format=row_counts.format,
        brokers=tuple(load.broker for load in ordered),
        totals=BrokerTotals(
            replica_count=[load.replica_count for load in ordered],
            leader_count=[load.leader_count for load in ordered],
            size_bytes=None if None in sizes else sizes,
        ),
        partitions_complete=False,
        facts=facts,
        notes=tuple(first_few(unwell)),
    )


def _load(item: dict[str, Any]) -> tuple[str | None, _Load | None]:
    """Return the load of this broker, or why it cannot be used."""
    fault = (
        fault_of_number(item.get("broker"), "Broker")
        or fault_of_number(item.get("replicas"), "Replicas", high=COUNT_MAX)
        or fault_of_number(item.get("leaders"), "Leaders", high=COUNT_MAX)
    )
    if fault:
        return fault, None
    if item["leaders"] > item["replicas"]:
        return f"Leaders is {item['leaders']}, more than Replicas, {item['replicas']}", None
    disk_mb = item.get("diskmb")
    size_bytes = None
    if disk_mb is not None:
        if (
            isinstance(disk_mb, bool)
            or not isinstance(disk_mb, int | float)
            or not 0 <= disk_mb <= SIZE_BYTES_MAX // MIB
        ):
            return f"DiskMB is {brief(disk_mb)[:40]}; allowed are numbers from 0 to {SIZE_BYTES_MAX // MIB}", None
        size_bytes = round(disk_mb * MIB)
    broker = BrokerView(id=BrokerId(item["broker"]), rack=plain(item.get("rack")), host=plain(item.get("host")))
    state = plain(item.get("brokerstate"), 40) or ""
    return None, _Load(
        broker=broker,
        replica_count=item["replicas"],
        leader_count=item["leaders"],
        size_bytes=size_bytes,
        state=state,
    )
