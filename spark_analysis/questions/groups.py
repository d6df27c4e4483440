"""Assign the partitions of consumer groups as Kafka would, and measure balance, moves and lag.

It answers for each group of a DataFrame of members, who gets which partition with one of Kafka's assignors
(`assignments`), how even that is beside the most even sizes and how many partitions move (`balance`), each move with
its reason (`moves`), and how far groups are behind (`lag`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from broker.errors import UsageError
from broker.releases import NEWEST, Release
from placement.consumer.registry import KAFKAS, load_assignor
from placement.traffic.consumers import NOW
from placement.traffic.crossing import PRICE_PER_GIB
from spark_analysis.answers.group_rows import GroupsAsked, assignment_rows, balance_rows, move_rows
from spark_analysis.frames.inputs import chosen
from spark_analysis.frames.log_inputs import as_documented, checked, is_good, log_keys, rejected, with_fault
from spark_analysis.frames.per_group import per_group
from spark_analysis.frames.transforming import question
from spark_analysis.tables.schemas import ASSIGNMENTS, BALANCE, LAG, MOVES, OFFSETS

ASSIGNORS: Final = (NOW, *KAFKAS)
_OFFSETS: Final = ("group", "topic", "partition", "current_offset", "log_end_offset")


@question
def assignments(
    members: DataFrame,
    partitions: DataFrame,
    *,
    assignor: str,
    release: str | None = None,
    by: Sequence[str] | None = None,
) -> DataFrame:
    """Return one row per partition that a member gets from `assignor` of Kafka's `release` (default the newest).

    Raises UsageError for an assignor or a release that is not known, and for a column that does not fit.
    """
    asked = groups_asked([assignor], release)
    return per_group(members, partitions, ASSIGNMENTS, assignment_rows, asked, by=by)


@question
def balance(
    members: DataFrame,
    partitions: DataFrame,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    release: str | None = None,
    by: Sequence[str] | None = None,
) -> DataFrame:
    """Return one row per group and assignor: sizes beside the most even ones, moves, and matches of racks.

    The assignor `now` stands for what members hold. Raises UsageError as `assignments` does.
    """
    return per_group(members, partitions, BALANCE, balance_rows, groups_asked(assignors, release), by=by)


@question
def moves(
    members: DataFrame,
    partitions: DataFrame,
    *,
    assignor: str,
    release: str | None = None,
    by: Sequence[str] | None = None,
) -> DataFrame:
    """Return one row per partition that `assignor` gives to another member than holds it, with the reason."""
    return per_group(members, partitions, MOVES, move_rows, groups_asked([assignor], release), by=by)


@question
def lag(offsets: DataFrame, *, by: Sequence[str] | None = None) -> DataFrame:
    """Return one row per group: records between its committed offsets and the ends of partitions.

    A committed offset beyond the end, as after a truncation, is no lag. Raises UsageError as `assignments` does.
    """
    of = log_keys(offsets, "offsets", by)
    rows = with_fault(chosen(offsets, "offsets", _OFFSETS, ("fault",), of))
    needed = {"group": None, "topic": None, "partition": 0}
    rows = checked(rows, OFFSETS, needed, {"current_offset": 0, "log_end_offset": 0})
    behind = F.greatest(F.col("log_end_offset") - F.col("current_offset"), F.lit(0))
    behind = F.when(F.col("log_end_offset").isNotNull() & F.col("current_offset").isNotNull(), behind)
    found = rows.groupBy(*of, "group").agg(
        F.count_if(is_good()).alias("partition_count"),
        F.sum(F.when(is_good(), behind)).alias("lag"),
        F.max(F.when(is_good(), behind)).alias("lag_max"),
        F.count_if(is_good() & (behind > 0)).alias("lagging_count"),
        F.count_if(is_good() & behind.isNull()).alias("unknown_count"),
        *rejected(),
    )
    return as_documented(found, of, LAG)


def groups_asked(
    assignors: Sequence[str], release: str | None = None, price_per_gib: float = PRICE_PER_GIB
) -> GroupsAsked:
    """Return what is asked about; raise UsageError for no assignor, one that is not known, or a price below 0."""
    if isinstance(assignors, str) or not assignors:
        raise UsageError(f"assignors are {assignors!r}; allowed is a list of one or more of {', '.join(ASSIGNORS)}")
    of = NEWEST if release is None else Release(release)
    for name in assignors:
        if name != NOW:
            load_assignor(name, release=of)
    if not 0 <= price_per_gib < float("inf"):
        raise UsageError(f"price_per_gib is {price_per_gib}; allowed is 0 or more")
    return GroupsAsked(tuple(dict.fromkeys(assignors)), of, price_per_gib)
