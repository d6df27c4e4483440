"""Compute how often a cluster loses data: copysets, scatter widths, simulated years, closed forms.

By the number of replicas: the sets of brokers that hold all replicas of a partition, beside the fewest possible; losses
a year by independent losses of brokers, simulated and in closed form, and by power cuts; how much of a lost broker's
leaders one other takes over; and how many partitions lose the records of their last seconds in a year, as Kafka
acknowledges a record once it is in the page cache of the in-sync replicas. `unflushed_loss_chance` is the share of
power cuts that lose acknowledged records; tests/benchmarks/unflushed.py measures it on simulated clusters. Brokers are
replaced under their own ids, so that a larger scatter width does not shorten `replace_hours`.

Example: a ring of four pairs, where a lost broker's neighbour takes over all that it led:
    >>> from broker.cluster import ClusterView, PartitionTable, TopicView
    >>> ring = [[1, 2], [2, 3], [3, 4], [4, 1]]
    >>> table = PartitionTable(topic_index=[0] * 4, partition_ids=[0, 1, 2, 3], replicas=ring)
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t")])
    >>> (found,) = durability(view, Rates(power_cuts_per_year=0), Years(years=1000), seed=1)
    >>> found.copysets.copyset_count, found.takeover_share_mean, found.losses_per_year_closed_form > 0
    (4, 1.0, True)

Source: Cidon et al., USENIX ATC 2013; KIP-966 for what Kafka promises of unflushed records; Cox, Renewal Theory, 1962.
"""

from __future__ import annotations

import zlib
from typing import Final

import attrs
import numpy as np

from broker.cluster import BoolArray, ClusterView, Int32Array, Int64Array
from broker.entropy import derive
from broker.errors import UsageError
from placement.outages.copysets import Copysets, copysets
from placement.outages.look_ahead import takeovers_of
from placement.outages.succession import successions
from placement.risks.rates import HOURS_PER_YEAR, Rates
from placement.risks.years_kernel import ALONE, POWER, fill_years

YEARS_MAX: Final = 1e9
BROKERS_MAX: Final = 8_192  # Takeovers of all pairs: 256 MiB.
_STREAM: Final = 16


@attrs.frozen(kw_only=True)
class Years:
    """Hold how long to simulate, and what Kafka adds: the share of cuts of all replicas that lose acknowledged records.

    `rack_power_share` is the share of rack outages in which the machines lose power.
    """

    years: float = 1_000.0
    unflushed_loss_chance: float = 1.0
    rack_power_share: float = 0.5

    def __attrs_post_init__(self) -> None:
        limits = {"years": YEARS_MAX, "unflushed_loss_chance": 1.0, "rack_power_share": 1.0}
        for name, high in limits.items():
            if not 0 <= getattr(self, name) <= high:
                raise UsageError(f"{name} is {getattr(self, name):g}; allowed is a number from 0 to {high:g}")


@attrs.frozen(kw_only=True)
class Durability:
    """Hold the durability of the partitions of one replication factor; takeovers are of the whole cluster.

    Losses a year are events that lose one copyset or more. `losses_per_year_closed_form` counts copysets, which is the
    same while losses are rare. Takeover shares are None where nothing is taken over.
    """

    copysets: Copysets
    losses_per_year_closed_form: float
    losses_per_year_independent: float
    losses_per_year_power_cut: float
    loss_count_independent: int
    loss_count_power_cut: int
    unflushed_partitions_per_year: float
    takeover_share_mean: float | None
    takeover_share_max: float | None
    leaders_after_loss_over_mean: float | None


def durability(view: ClusterView, rates: Rates, simulated: Years, *, seed: int) -> tuple[Durability, ...]:
    """Return how durable the partitions are, an entry for each number of replicas, ascending.

    Losses depend on the seed and the cluster's name alone. Raises UsageError for a view that does not list every
    partition, and for too many brokers.
    """
    if view.wholeness.refusal is not None:
        raise UsageError(f"cluster {view.name!r}: {view.wholeness.refusal}, so that copysets are not known")
    if len(view.brokers) > BROKERS_MAX:
        raise UsageError(f"cluster {view.name!r} has {len(view.brokers):,} brokers; allowed are {BROKERS_MAX:,}")
    rows = view.replica_rows
    ordered = np.sort(rows, axis=1)[:, ::-1].astype(np.int32)
    stream = derive(seed, zlib.crc32(view.name.encode()), _STREAM)
    events = simulated_losses(ordered, len(view.brokers), rates, simulated.years, seed=stream)
    alone = {"loss_rate": rates.broker_losses_per_year, "replace_years": rates.replace_hours / HOURS_PER_YEAR}
    factors = np.count_nonzero(ordered >= 0, axis=1)
    in_one_rack = _in_one_rack(view, rows)
    taken = takeovers(view)
    found = []
    for one in copysets(view):
        factor = one.replication_factor
        racked = float(np.count_nonzero(in_one_rack & (factors == factor)))
        cuts = rates.power_cuts_per_year * one.partition_count
        cuts += rates.rack_outages_per_year * simulated.rack_power_share * racked
        per_year = events[:, factor] / simulated.years if simulated.years else np.zeros(2)
        found.append(
            Durability(
                copysets=one,
                losses_per_year_closed_form=one.copyset_count * losses_per_year(factor, **alone),
                losses_per_year_independent=float(per_year[ALONE]),
                losses_per_year_power_cut=float(per_year[POWER]),
                loss_count_independent=int(events[ALONE, factor]),
                loss_count_power_cut=int(events[POWER, factor]),
                unflushed_partitions_per_year=simulated.unflushed_loss_chance * cuts,
                takeover_share_mean=taken[0],
                takeover_share_max=taken[1],
                leaders_after_loss_over_mean=taken[2],
            )
        )
    return tuple(found)


def losses_per_year(factor: int, *, loss_rate: float, replace_years: float) -> float:
    """Return how often a year all of `factor` brokers are lost at the same time, each beginning anew when replaced.

    The brokers alternate between good and lost, independently; it holds for any distribution of the times.
    """
    cycle = 1 + loss_rate * replace_years
    return factor * (loss_rate / cycle) * (loss_rate * replace_years / cycle) ** (factor - 1)


def simulated_losses(ordered: Int32Array, broker_count: int, rates: Rates, years: float, *, seed: int) -> Int64Array:
    """Return the events that lose data in so many years, int64[2, F + 1], by cause and number of replicas.

    `ordered` int32[P, F] holds the brokers of each partition, ascending or descending, -1 last.
    """
    width = ordered.shape[1]
    tally = np.zeros((2, width + 1), dtype=np.int64), np.zeros((2, width + 1), dtype=np.int64)
    sets = np.unique(ordered[(ordered >= 0).any(axis=1)], axis=0)
    if sets.shape[0]:
        cut_chance = rates.power_cut_lost_percent / 100
        how_often = rates.broker_losses_per_year, rates.replace_hours / HOURS_PER_YEAR
        stream = np.array([seed & (1 << 64) - 1], dtype=np.uint64)
        places = _places(sets, broker_count)
        fill_years(stream, float(years), (*how_often, rates.power_cuts_per_year, cut_chance), (sets, *places), tally)
    return tally[0]


def _places(sets: Int32Array, broker_count: int) -> tuple[Int64Array, Int64Array]:
    """Return for each broker where its sets begin, int64[B + 1], and the sets of one broker after another."""
    rows, columns = np.nonzero(sets >= 0)
    held = sets[rows, columns]
    order = np.argsort(held, kind="stable")
    first = np.concatenate(([0], np.cumsum(np.bincount(held, minlength=broker_count))))
    return first.astype(np.int64), rows[order].astype(np.int64)


def _in_one_rack(view: ClusterView, rows: Int32Array) -> BoolArray:
    """Return for each partition whether all its replicas are in one known rack, bool[P]."""
    of_rows = np.append(view.rack_places, -2)[rows]
    first = of_rows[:, :1] if rows.shape[1] else np.full((rows.shape[0], 1), -1)
    racked: BoolArray = ((of_rows == first) | (rows < 0)).all(axis=1) & (first[:, 0] >= 0)
    return racked


def takeovers(view: ClusterView) -> tuple[float | None, float | None, float | None]:
    """Return the mean and largest share of a broker's leaders that one other takes over, and what that one then leads.

    The last is the most that a broker leads after the loss of one, divided by the mean over live brokers before it.
    """
    found = successions(view)
    count = len(view.brokers)
    may_lead = np.arange(found.order.shape[1])[None, :] < found.led_count[:, None]
    leaders, _, taken = takeovers_of(found.order, may_lead, count)
    most = taken.max(axis=1, initial=0)
    led = most > 0
    if not led.any():
        return None, None, None
    shares = most[led] / leaders[led]
    after = taken + leaders[None, :]
    np.fill_diagonal(after, 0)
    mean = leaders.sum() / np.count_nonzero(found.live)
    return float(shares.mean()), float(shares.max()), float(after.max(axis=1)[led].mean() / mean)
