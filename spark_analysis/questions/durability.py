"""Count copysets and scatter widths of each cluster, beside the fewest copysets possible.

What it decides: the table `durability`: a row per cluster and number of replicas; and what is shown of many clusters:
the means of each shape and placer.

How: `placement.outages.copysets` counts.

Example: QUESTION.rows(view, {}) is the Arrow table of one cluster.

Left out: racks.

Source: placement/outages/copysets.py, after Cidon et al., USENIX ATC 2013.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from broker.cluster import ClusterView
from broker.errors import UsageError
from placement.outages import copysets as counted
from spark_analysis.questions.question import Field, Question, Shown, ShownTable, Values
from spark_analysis.questions.sums import means
from spark_analysis.tables.columns import KEY, Column, Table

_BROKERS: Final = "brokers"
_SETS: Final = "copysets"
COPYSETS: Final = Table(
    "copysets",
    "one row per cluster and number of replicas",
    (
        *KEY,
        Column("replication_factor", "long", "Number of replicas of these partitions", "replicas"),
        Column("partition_count", "long", "Partitions with so many replicas", "partitions"),
        Column("broker_count", "long", "Brokers that hold some of them", _BROKERS),
        Column("copyset_count", "long", "Sets of brokers that hold all replicas of some partition", _SETS),
        Column("copyset_count_min", "long", "Fewest copysets that these scatter widths allow", _SETS, nullable=True),
        Column("copyset_count_least_scatter", "long", "Fewest copysets at all, with the least scatter width", _SETS),
        Column("scatter_width_min", "long", "Fewest others that a broker shares with", _BROKERS, nullable=True),
        Column("scatter_width_mean", "double", "Mean of the others that a broker shares with", _BROKERS, nullable=True),
        Column("scatter_width_max", "long", "Most others that a broker shares with", _BROKERS, nullable=True),
    ),
)
DURABILITY: Final = Table("durability", COPYSETS.grain, COPYSETS.columns)
_SHOWN: Final = (
    Field("partition_count", "partitions", "count"),
    Field("copyset_count", "copysets", "count"),
    Field("copyset_count_min", "fewest for the width", "count"),
    Field("scatter_width_mean", "scatter width", "decimal"),
)


def copyset_table(view: ClusterView) -> pa.Table:
    """Return the copysets of one cluster, a row for each number of replicas."""
    if not view.partitions_complete:
        raise UsageError(f"of cluster {view.name!r} not every partition is listed, so that copysets are not known")
    return counted.copysets_table(counted.copysets(view))


def _answer(view: ClusterView, _: Values) -> pa.Table:
    return copyset_table(view)


def _show(rows: pa.Table, _: Values) -> Shown:
    table = ShownTable(
        "by_placer",
        "Means over clusters",
        (Field("shape", "shape"), Field("placer", "placer"), Field("replication_factor", "replicas", "count"), *_SHOWN),
        means(rows, ("shape", "placer", "replication_factor"), [field.key for field in _SHOWN]),
    )
    return Shown(
        "Losing all brokers of a copyset at once loses a partition: fewer copysets make that rarer, and a greater "
        "scatter width lets more brokers help to rebuild one.",
        (table,),
    )


QUESTION: Final = Question(table=DURABILITY, title="How durable is the data?", answer=_answer, show=_show)
