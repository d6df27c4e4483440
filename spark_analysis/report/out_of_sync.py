"""Show which brokers are missing from ISRs, and which of them explain the under-replicated partitions.

Example: "Broker 4 (rack b) explains 118 of 120 under-replicated", and a table of the brokers that are
missing, most first.

Left out: brokers of clusters that are not shown in full; the table of brokers has them.

Source: placement.balance.out_of_sync for what counts as missing and as explained.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from broker.drawing.element import Markup, tag
from spark_analysis.report.figures import count, share_of
from spark_analysis.report.model import ClusterDetail, Report
from spark_analysis.report.parts import Header, cluster_link, note, table
from spark_analysis.report.rows import BrokerLoad
from spark_analysis.report.states import cause_in_words

LISTED_MAX: Final = 50


def missing_most(detail: ClusterDetail) -> list[BrokerLoad]:
    """Return the brokers that are missing from ISRs, those missing from most first."""
    found = [broker for broker in detail.brokers if broker.missing_from_isr_count]
    return sorted(found, key=lambda broker: (-(broker.missing_from_isr_count or 0), broker.broker_id))


def cause_line(detail: ClusterDetail) -> Markup | None:
    """Return the sentence that names who explains a cluster's under-replicated partitions; None without any."""
    cause = cause_in_words(detail.row.facts)
    if cause is None:
        return None
    named = detail.row.facts.out_of_sync_brokers or ()
    racks = {broker.rack for broker in detail.brokers if broker.broker_id in named}
    place = f" All are in rack {next(iter(racks))}." if len(racks) == 1 and len(named) > 1 and None not in racks else ""
    return tag("p", f"{cause[0].upper()}{cause[1:]}.{place}", class_="line")


def out_of_sync_table(report: Report, places: Set[int]) -> Markup | None:
    """Return the brokers missing from ISRs, of the clusters at these places of the report; None if there is none."""
    found = [(detail.row, broker) for detail in report.details for broker in missing_most(detail)]
    found = [(row, broker) for row, broker in found if row.place in places]
    if not found:
        return None
    headers = (
        Header("broker", "num"), Header("rack"), Header("cluster"), Header("missing from ISRs", "num"),
        Header("share of its replicas", "num"),
    )  # fmt: skip
    rows = [
        (
            str(broker.broker_id),
            "–" if broker.rack is None else broker.rack,
            cluster_link(row.anchor, row.facts.cluster),
            count(broker.missing_from_isr_count),
            share_of(broker.missing_from_isr_count, broker.replica_count),
        )
        for row, broker in found[:LISTED_MAX]
    ]
    more = (
        note(f"{LISTED_MAX} of {count(len(found))} are shown; tables/brokers has all of them.")
        if len(found) > LISTED_MAX
        else None
    )
    caption = "Brokers missing from ISRs, the worst cluster first"
    return tag("div", table(caption, headers, rows, sortable=True), more)
