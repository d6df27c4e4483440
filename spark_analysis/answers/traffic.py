"""Ask what produce, replication and consume send across zones, and what the closest replica and assignors save.

It gives the table `traffic`: a row per cluster and change, with prices for a month of 30 days; and what is shown of
many clusters: the mean of each change. Zones are racks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import ClusterView, Int64Array
from broker.errors import UsageError
from broker.releases import NEWEST
from broker.units import GIB
from placement.traffic import Consumers, GroupPlan, ZonedPartitions, sample_groups
from placement.traffic.consumers import GROUP_COUNT_MAX, MEMBER_COUNT_MAX, NOW
from placement.traffic.crossing import NOTHING, PRICE_PER_GIB, even_shares
from placement.traffic.group_traffic import least_fetched
from placement.traffic.savings import LEAST, add_readers, changes_of, no_readers
from spark_analysis.answers.group_rows import change_rows, traffic_or_refusal
from spark_analysis.answers.question import Assumption, Cell, Field, Groups, Question, Shown, ShownTable, Values
from spark_analysis.answers.sums import groups, is_of_one_placer, mean, means
from spark_analysis.tables.columns import KEY, Table
from spark_analysis.tables.schemas import FAULT, TRAFFIC_CHANGES

MONTH_DAYS: Final = 30
CLASSIC: Final = "range"
ASSIGNORS: Final = ("cooperative-sticky", "uniform")
"""The other assignors that groups are asked to use: what clients and coordinators would take instead."""
TRAFFIC: Final = Table(
    "traffic", TRAFFIC_CHANGES.grain, (*KEY, *(one for one in TRAFFIC_CHANGES.columns if one != FAULT))
)
GROUPS: Final = (
    Assumption("groups", 10, "Consumer groups of a cluster", "groups", high=GROUP_COUNT_MAX, whole=True),
    Assumption(
        "members", 6, "Members of a group, in the zones in turn", "members", low=1, high=MEMBER_COUNT_MAX, whole=True
    ),
    Assumption("topics", 3, "Topics that a group subscribes to", "topics", low=1, high=1_000_000, whole=True),
    Assumption("seed", 0, "Seed of the groups", "", high=2**53, whole=True),
)
DRAWN: Final = tuple(one.name for one in GROUPS)
SUBSCRIBED: Final = "Members are taken to subscribe to the topics that their group holds; other topics are not read."
_PRICE_SOURCE: Final = "AWS EC2, data transfer between availability zones: 0.01 USD per GB in each direction"
_SHOWN: Final = (
    Field("produce_bytes", "produce", "bytes"),
    Field("replicate_bytes", "replication", "bytes"),
    Field("consume_bytes", "consume", "bytes"),
    Field("cost", "cost a month, USD", "decimal"),
    Field("saved_cost", "saved, USD", "decimal"),
)


def traffic_table(view: ClusterView, values: Values) -> pa.Table:
    """Return what each change leaves of the traffic across zones of one cluster with drawn groups."""
    partitions = _in_a_month(view, values)
    assignors = {NOW: CLASSIC, **{name: name for name in ASSIGNORS}}
    return _changed(partitions, drawn_groups(partitions, values), assignors, values)


def given_traffic_table(view: ClusterView, values: Values, groups: Groups) -> pa.Table:
    """Return what each change leaves of the traffic across zones of one cluster with the given groups.

    An assignor that refuses a group is a fault.
    """
    partitions = _in_a_month(view, values)
    given = (Consumers.of(name, members, partitions) for name, members in groups)
    return _changed(partitions, given, {name: name for name in (NOW, CLASSIC, *ASSIGNORS)}, values)


def answered(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the rows of one cluster, without the key, with a `fault` each; columns left out are null."""
    fields: list[Any] = [pa.field(field.name, field.type) for field in list(table.arrow_schema())[len(KEY) :]]
    return pa.Table.from_pylist(
        [dict(row) for row in rows], schema=pa.schema([*fields, pa.field("fault", pa.string())])
    )


def _changed(
    partitions: ZonedPartitions, groups: Iterable[Consumers], assignors: Mapping[str, str], values: Values
) -> pa.Table:
    readers, least = {name: no_readers(partitions) for name in assignors}, NOTHING
    faults: dict[str, str] = {}
    for consumers in groups:
        least = least.plus(least_fetched(partitions, consumers))
        for name, matrix in readers.items():
            found = traffic_or_refusal(partitions, consumers, assignors[name], NEWEST)
            if isinstance(found, str):
                faults.setdefault(name, f"group {consumers.name!r}: {found}")
            else:
                add_readers(matrix, consumers.rows, found.reader_zones, found.is_read)
    kept = {name: matrix for name, matrix in readers.items() if name not in faults}
    changes = changes_of(partitions, even_shares(len(partitions.zones)), kept, least=least)
    refused = [{"change": name, FAULT.name: fault} for name, fault in faults.items()]
    return answered(TRAFFIC, [*change_rows(changes, values["price_per_gib"]), *refused])


def _in_a_month(view: ClusterView, values: Values) -> ZonedPartitions:
    plain = ZonedPartitions.of(view)
    if not plain.zones:
        raise UsageError(f"no broker of cluster {view.name!r} has a rack, so that nothing is known of zones")
    return attrs.evolve(plain, sizes=_monthly(plain, values))


def drawn_groups(partitions: ZonedPartitions, values: Values) -> Iterator[Consumers]:
    """Yield the groups that the values ask for, drawn from the seed."""
    plan = GroupPlan(*(int(values[name]) for name in ("groups", "members", "topics")))
    for name, members in sample_groups(partitions, plan, seed=int(values["seed"])):
        yield Consumers.of(name, members, partitions)


def _monthly(partitions: ZonedPartitions, values: Values) -> Int64Array:
    if partitions.sizes is None:
        return np.full(partitions.count, int(values["produced_gib"] * GIB), np.int64)
    scaled: Int64Array = np.rint(partitions.sizes * (MONTH_DAYS / values["retention_days"])).astype(np.int64)
    return scaled


def _show(rows: pa.Table, values: Values) -> Shown:
    table = ShownTable(
        "by_change",
        "Means over clusters; each flow's bytes across zones in a month",
        (Field("shape", "shape"), Field("placer", "placer"), Field("change", "change"), *_SHOWN),
        _in_order(means(rows, ("shape", "placer", "change"), [field.key for field in _SHOWN])),
    )
    lead = "Groups are those given; now is what their members hold."
    if "groups" in values:
        groups, members, topics = (int(values[name]) for name in ("groups", "members", "topics"))
        lead = (
            f"{groups:,} groups a cluster, of {members:,} members on {topics:,} topics each, are drawn, and assigned "
            f"by {CLASSIC} now."
        )
    lead = f"{_headline(rows)}{lead} A GiB that crosses zones costs {values['price_per_gib']:g} USD."
    notes = (
        "The row 'least' is the least that groups can fetch, whatever the assignor.",
        f"A partition takes what it keeps, scaled from {values['retention_days']:g} days to {MONTH_DAYS}; where sizes "
        f"are not known, {values['produced_gib']:g} GiB a month.",
        "Producers are spread evenly over zones.",
    )
    return Shown(lead, (table,), notes if "groups" in values else (*notes, SUBSCRIBED))


def _headline(rows: pa.Table) -> str:
    """Return what crossing zones costs now and which change saves most; "" if unknown, or of several placers."""
    if not is_of_one_placer(rows):
        return ""
    found = {str(change): some for (change,), some in groups(rows, ("change",))}
    now = mean(found[NOW]["cost"].to_pylist()) if NOW in found else None
    if now is None:
        return ""
    saved = {name: mean(some["saved_cost"].to_pylist()) or 0.0 for name, some in found.items() if name != LEAST}
    best = max(sorted(saved), key=lambda name: saved[name])
    saving = f"{best} saves most, {saved[best]:,.2f}" if saved[best] > 0 else "no change here saves any"
    return f"What crosses zones costs {now:,.2f} USD a month and cluster; {saving}. "


def _in_order(rows: tuple[tuple[Cell, ...], ...]) -> tuple[tuple[Cell, ...], ...]:
    """Return the rows of each shape and placer with what is now first and the least last."""
    ordered = [
        row
        for _, some in itertools.groupby(rows, key=lambda row: row[:2])
        for row in sorted(some, key=lambda row: {NOW: 0, LEAST: 2}.get(str(row[2]), 1))
    ]
    return tuple(ordered)


QUESTION: Final = Question(
    table=TRAFFIC,
    title="What crosses zones, and what would save it?",
    answer=traffic_table,
    show=_show,
    answer_groups=given_traffic_table,
    drawn=DRAWN,
    assumptions=(
        *GROUPS,
        Assumption("price_per_gib", PRICE_PER_GIB, "Price of a GiB that crosses zones", "USD", _PRICE_SOURCE, high=1e6),
        Assumption("retention_days", 7, "Days for which sizes are kept", "days", "log.retention.hours", low=0.01),
        Assumption("produced_gib", 10, "Produced to a partition a month, without sizes", "GiB", high=1e6),
    ),
)
