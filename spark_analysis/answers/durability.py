"""Ask how often each cluster loses data, and for its copysets beside the fewest possible.

It gives the table `durability`: a row per cluster and number of replicas; and what is shown of many clusters: the
means of each shape and placer.

Source: placement/risks, after Cidon et al., USENIX ATC 2013.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import pyarrow as pa

from broker.cluster import ClusterView
from placement.outages import copysets as counted
from placement.risks.durability import YEARS_MAX, Durability, Years, durability
from spark_analysis.answers.availability import RATES, SEED, rates_of
from spark_analysis.answers.question import Assumption, Field, Question, Shown, ShownTable, Values
from spark_analysis.answers.sums import means
from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.limits import check_listed

_BROKERS: Final = "brokers"
_SETS: Final = "copysets"
_A_YEAR: Final = "per year"
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
DURABILITY: Final = Table(
    "durability",
    COPYSETS.grain,
    (
        *COPYSETS.columns,
        Column("losses_per_year_closed_form", "double", "Copysets lost by independent losses of brokers", _A_YEAR),
        Column("losses_per_year_independent", "double", "Events that lose data by independent losses", _A_YEAR, True),
        Column("losses_per_year_power_cut", "double", "Power cuts that lose data", _A_YEAR, True),
        Column("simulated_years", "double", "Years that were simulated", "years"),
        Column("loss_count_independent", "long", "Simulated independent losses that lose data", "events"),
        Column("loss_count_power_cut", "long", "Simulated power cuts that lose data", "events"),
        Column(
            "unflushed_partitions_per_year", "double", "Partitions that lose acknowledged unflushed records", _A_YEAR
        ),
        Column("takeover_share_mean", "double", "Largest share of a lost broker's leaders that one other takes over, "
               "mean over the brokers of the cluster", nullable=True),
        Column("takeover_share_max", "double", "The same, of the broker with the largest", nullable=True),
        Column("leaders_after_loss_over_mean", "double", "Most leaders of a broker after the loss of another, over the "
               "mean before it, mean over the brokers of the cluster", nullable=True),
    ),
)  # fmt: skip
YEARS: Final = (
    Assumption("years", 1_000, "Years that are simulated", "years", high=YEARS_MAX),
    Assumption(
        "unflushed_loss_chance",
        1.0,
        "Share of power cuts of all replicas that lose acknowledged records of a partition in use",
        "share",
        "ours: python -m tests.benchmarks.unflushed",
        high=1.0,
    ),
    Assumption("rack_power_share", 0.5, "Share of rack outages that are power cuts", "share", high=1.0),
)


def copyset_table(view: ClusterView) -> pa.Table:
    """Return the copysets of one cluster, a row for each number of replicas."""
    check_listed(view, "copysets are not known")
    return counted.copysets_table(counted.copysets(view))


def durability_table(view: ClusterView, values: Values) -> pa.Table:
    """Return how durable one cluster is, a row for each factor; raise UsageError if a part is not listed."""
    simulated = Years(**{one.name: values[one.name] for one in YEARS})
    found = durability(view, rates_of(values), simulated, seed=int(values["seed"]))
    rows = [_row(one, simulated.years) for one in found]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(DURABILITY.arrow_schema())[len(KEY) :]))


def _row(one: Durability, years: float) -> dict[str, Any]:
    row = {name: value for name, value in attrs.asdict(one).items() if name != "copysets"}
    if not years:
        row |= dict.fromkeys(("losses_per_year_independent", "losses_per_year_power_cut"))
    return row | attrs.asdict(one.copysets) | {"simulated_years": years}


_COUNTS: Final = (
    Field("partition_count", "partitions", "count"),
    Field("copyset_count", "copysets", "count"),
    Field("copyset_count_min", "fewest for the width", "count"),
    Field("scatter_width_mean", "scatter width", "decimal"),
    Field("takeover_share_mean", "one takes over", "percent"),
    Field("leaders_after_loss_over_mean", "then leads, times the mean", "decimal"),
)
_LOSSES: Final = (
    Field("losses_per_year_closed_form", "independent, closed form", "chance"),
    Field("losses_per_year_independent", "independent, simulated", "chance"),
    Field("losses_per_year_power_cut", "power cuts, simulated", "chance"),
    Field("unflushed_partitions_per_year", "partitions with unflushed records lost", "chance"),
)
_BY: Final = (Field("shape", "shape"), Field("placer", "placer"), Field("replication_factor", "replicas", "count"))


def _show(rows: pa.Table, values: Values) -> Shown:
    by = [field.key for field in _BY]
    tables = [
        ShownTable(name, caption, (*_BY, *fields), means(rows, by, [field.key for field in fields]))
        for name, caption, fields in (
            ("by_placer", "Copysets and what one broker takes over, means over clusters", _COUNTS),
            ("losses", "Losses a year, means over clusters", _LOSSES),
        )
    ]
    return Shown(
        "Losing all brokers of a copyset at once loses a partition: fewer copysets make that rarer. But where brokers "
        "share partitions with few others, one of them takes over the leaders of a lost broker.",
        tuple(tables),
        (
            f"Each cluster was simulated for {values['years']:,.0f} years: what is rarer shows as 0. The closed form "
            "needs no simulation.",
            "Kafka acknowledges records in the page cache: a power cut of all replicas of a partition loses the last "
            "seconds of it, whatever the placement; racks with power of their own keep them.",
        ),
    )


QUESTION: Final = Question(
    table=DURABILITY,
    title="How durable is the data?",
    answer=durability_table,
    show=_show,
    assumptions=(*YEARS, SEED, *RATES),
)
