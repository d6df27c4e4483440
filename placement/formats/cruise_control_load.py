"""Read Cruise Control's `/load`: total replicas, leaders and megabytes (2^20 bytes) of each broker, and no partition.

Source: Cruise Control BrokerStats and SingleBrokerStats (older versions print no Rack).
"""

from __future__ import annotations

from typing import Any, Final

from broker.cluster import BrokerTotals, BrokerView, ClusterView
from broker.ids import BrokerId
from broker.partition_faults import fault_of_number
from broker.units import MIB, SIZE_BYTES_MAX
from placement.formats.documents import brief, folded, plain
from placement.formats.parsed import RowCounts, first_few

COUNT_MAX: Final = 2**40  # More replicas on one broker than any cluster has in all.


def is_load(value: Any) -> bool:
    """Return whether an object is a load: brokers with counts of replicas."""
    brokers = folded(value).get("brokers")
    return isinstance(brokers, list) and any({"broker", "replicas"} <= folded(item).keys() for item in brokers)


def read_load(
    value: Any, place: str, row_counts: RowCounts, *, name: str, facts: tuple[tuple[str, str], ...] = ()
) -> ClusterView:
    """Return the cluster of one load object; unusable brokers are rejected in `row_counts`."""
    loads: dict[int, dict[str, Any]] = {}
    for number, raw in enumerate(folded(value)["brokers"]):
        item = folded(raw)
        fault = _fault(item)
        if fault is None and item["broker"] in loads:
            fault = f"broker {item['broker']} is already listed"
        if fault:
            row_counts.reject(f"{place}brokers[{number}]: {fault}", brief(raw))
            continue
        loads[item["broker"]] = item
        row_counts.rows_analysed += 1
    ordered = [(BrokerId(identity), loads[identity]) for identity in sorted(loads)]
    sizes = [None if item.get("diskmb") is None else round(item["diskmb"] * MIB) for _, item in ordered]
    states = [(identity, plain(item.get("brokerstate"), 40) or "") for identity, item in ordered]
    return ClusterView(
        name=name,
        source=row_counts.source,
        format=row_counts.format,
        brokers=tuple(
            BrokerView(id=identity, rack=plain(item.get("rack")), host=plain(item.get("host")))
            for identity, item in ordered
        ),
        totals=BrokerTotals(
            replica_count=[item["replicas"] for _, item in ordered],
            leader_count=[item["leaders"] for _, item in ordered],
            size_bytes=None if None in sizes else sizes,
        ),
        partitions_complete=False,
        facts=facts,
        notes=tuple(
            first_few([f"broker {identity} is {state}" for identity, state in states if state not in ("", "ALIVE")])
        ),
    )


def _fault(item: dict[str, Any]) -> str | None:
    """Return why this broker's load cannot be used, or None."""
    fault = (
        fault_of_number(item.get("broker"), "Broker")
        or fault_of_number(item.get("replicas"), "Replicas", high=COUNT_MAX)
        or fault_of_number(item.get("leaders"), "Leaders", high=COUNT_MAX)
    )
    if fault:
        return fault
    if item["leaders"] > item["replicas"]:
        return f"Leaders is {item['leaders']}, more than Replicas, {item['replicas']}"
    disk_mb, most = item.get("diskmb"), SIZE_BYTES_MAX // MIB
    is_number = isinstance(disk_mb, int | float) and not isinstance(disk_mb, bool)
    if disk_mb is None or (is_number and 0 <= disk_mb <= most):
        return None
    return f"DiskMB is {brief(disk_mb)[:40]}; allowed are numbers from 0 to {most}"
