"""Ask how each of Kafka's assignors would serve consumer groups: evenness, traffic across zones, what moves.

It gives the table `consumers`: a row per cluster and assignor, summed over groups that are given, or drawn as for
traffic.py; and what is shown of many clusters: the mean of each assignor. Zones are racks; a fetch crosses from the
leader, or from the closest replica (KIP-392)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import ClusterView
from broker.releases import NEWEST
from placement.consumer.registry import KAFKAS
from placement.traffic import Consumers, GroupTraffic, ZonedPartitions
from placement.traffic.consumers import NOW
from placement.traffic.group_traffic import least_fetched
from spark_analysis.answers.group_rows import traffic_or_refusal
from spark_analysis.answers.question import Field, Groups, Question, Shown, ShownTable, Values
from spark_analysis.answers.sums import groups, is_of_one_placer, means
from spark_analysis.answers.traffic import CLASSIC, DRAWN, GROUPS, SUBSCRIBED, answered, drawn_groups
from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.schemas import FAULT

_FETCHES: Final = "fetches"
CONSUMERS: Final = Table(
    "consumers",
    "one row per cluster and assignor, summed over its groups",
    (
        *KEY,
        Column("assignor", "string", "Kafka's name of the assignor; now for what members of given groups hold"),
        Column("group_count", "long", "Groups", "groups"),
        Column("uneven_group_count", "long", "Groups in which two members differ by two partitions or more", "groups"),
        Column("fetched_count", "long", "Partitions that groups fetch", _FETCHES),
        Column("crossing_count", "long", "Fetches across zones from leaders; null where no rack is known", _FETCHES),
        Column("closest_count", "long", "Fetches across zones from the closest replica", _FETCHES),
        Column("least_count", "long", "Fewest fetches across zones of any assignment", _FETCHES),
        Column(
            "moved_count",
            "long",
            "Partitions with another member than now, null where that is not known; of drawn groups, than range gives",
            "partitions",
        ),
    ),
)
_SHOWN: Final = tuple(
    Field(name, title, "mean")
    for name, title in (
        ("uneven_group_count", "uneven groups"),
        ("fetched_count", "fetches"),
        ("crossing_count", "across zones"),
        ("closest_count", "from the closest"),
        ("least_count", "least"),
        ("moved_count", "moved"),
    )
)


def consumers_table(view: ClusterView, values: Values) -> pa.Table:
    """Return what each assignor makes of the drawn groups of one cluster."""
    partitions = ZonedPartitions.of(view)

    def moved(consumers: Consumers, found: GroupTraffic) -> int:
        return int((consumers.assigned(found.assignor) != consumers.assigned(CLASSIC)).sum())

    return _counted(partitions, drawn_groups(partitions, values), tuple(KAFKAS), moved)


def given_consumers_table(view: ClusterView, _: Values, groups: Groups) -> pa.Table:
    """Return what each assignor makes of the given groups of one cluster; one that refuses a group is a fault."""
    partitions = ZonedPartitions.of(view)
    given = (Consumers.of(name, members, partitions) for name, members in groups)
    return _counted(partitions, given, (NOW, *KAFKAS), lambda _, found: found.moved_count)


def _counted(
    partitions: ZonedPartitions,
    groups: Iterable[Consumers],
    assignors: Sequence[str],
    moved: Callable[[Consumers, GroupTraffic], int | None],
) -> pa.Table:
    rows = {name: dict.fromkeys(CONSUMERS.column_names[len(KEY) + 1 :], 0) for name in assignors}
    moves_known = True
    faults: dict[str, str] = {}
    for consumers in groups:
        least = least_fetched(partitions, consumers)
        for name, row in rows.items():
            found = traffic_or_refusal(partitions, consumers, name, NEWEST)
            if isinstance(found, str):
                faults.setdefault(name, f"group {consumers.name!r}: {found}")
                continue
            row["group_count"] += 1
            row["uneven_group_count"] += found.size_max - found.size_min > 1
            row["fetched_count"] += int(found.leader.count)
            row["crossing_count"] += int(found.leader.crossing_count)
            row["closest_count"] += int(found.closest.crossing_count)
            row["least_count"] += int(least.crossing_count)
            moved_count = moved(consumers, found)
            moves_known &= moved_count is not None
            row["moved_count"] += moved_count or 0
    of_zones = () if partitions.zones else ("crossing_count", "closest_count", "least_count")
    unknown = dict.fromkeys((*of_zones, *(() if moves_known else ("moved_count",))))
    listed = [
        {"assignor": name, FAULT.name: faults[name]} if name in faults else {"assignor": name, **row, **unknown}
        for name, row in rows.items()
    ]
    return answered(CONSUMERS, listed)


def _show(rows: pa.Table, values: Values) -> Shown:
    table = ShownTable(
        "by_assignor",
        "Means over clusters",
        (Field("shape", "shape"), Field("placer", "placer"), Field("assignor", "assignor"), *_SHOWN),
        means(rows, ("shape", "placer", "assignor"), [field.key for field in _SHOWN]),
    )
    found = _headline(rows)
    if "groups" not in values:
        return Shown(f"{found}Groups are those given; now is what their members hold.", (table,), (SUBSCRIBED,))
    groups, members, topics = (int(values[name]) for name in ("groups", "members", "topics"))
    lead = f"{groups:,} groups a cluster, of {members:,} members on {topics:,} topics each, are drawn and assigned."
    return Shown(found + lead, (table,))


def _headline(rows: pa.Table) -> str:
    """Return which assignors make fewest and most fetches cross zones; "" if unknown, or of several placers."""
    known = rows.filter(pc.is_valid(rows["crossing_count"]))
    shares = {
        str(name): pc.sum(some["crossing_count"]).as_py() / max(pc.sum(some["fetched_count"]).as_py(), 1)
        for (name,), some in groups(known, ("assignor",))
    }
    if len(set(shares.values())) < 2 or not is_of_one_placer(known):
        return ""
    fewest, most = (pick(shares, key=lambda name: (shares[name], name)) for pick in (min, max))
    where = "" if known.num_rows == rows.num_rows else "Where zones are known. "
    return (
        f"{where}With {fewest} the fewest fetches cross zones, {100 * shares[fewest]:.1f} %, with {most} the most, "
        f"{100 * shares[most]:.1f} %. "
    )


QUESTION: Final = Question(
    table=CONSUMERS,
    title="Which assignor suits the consumers?",
    answer=consumers_table,
    show=_show,
    assumptions=GROUPS,
    answer_groups=given_consumers_table,
    drawn=DRAWN,
)
