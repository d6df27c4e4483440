"""Look ahead at every likely outage: each broker, each pair, each rack, and each rack with one more broker.

Constraints: pairs take a fixed amount of memory for each, so beyond `PAIR_BROKERS_MAX` brokers their table is left out,
and a note says so; `outage` answers any pair. A broker without a rack is in no rack's outage.

How: each count is a threshold on a part of the order of succession (succession.py), so that one pass over the
partitions counts it for all sets (sweep_kernel.py).

Example: look_ahead(view).brokers["leaderless_count"] are the partitions without a leader once each broker is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np

from broker.cluster import BoolArray, ClusterView, Int32Array, Int64Array
from placement.outages.arrow import column_of, names_column, table_of, unknown_column
from placement.outages.lost import Counts, after_loss, counts_of
from placement.outages.succession import Successions, successions
from placement.outages.sweep_kernel import fill_pair_takeovers, fill_sweep

if TYPE_CHECKING:
    import pyarrow as pa

PAIR_BROKERS_MAX: Final = 4_096  # 8.4 million pairs: 700 MB of columns at most, and some seconds.
SINGLE: Final = "brokers"
PAIR: Final = "pairs"
RACK: Final = "racks"
RACK_AND_BROKER: Final = "racks_and_brokers"
SCOPES: Final = (SINGLE, PAIR, RACK, RACK_AND_BROKER)
_ONE: Final = np.ones(1, dtype=np.int64)
Rows: TypeAlias = tuple[Int64Array | None, Int64Array | None, Int64Array | None]


@attrs.frozen(kw_only=True, eq=False)
class Sweep:
    """Hold columns of one scope, equally long: its sets, its counts and its leaders; None where not known.

    `rack` and `broker` and `other_broker` are places in `view.racks` and rows of `view.brokers`. `failover_broker` is
    the row of the broker that takes over most, -1 for none; it is known where one broker is lost. `is_loss` bool[sets]
    marks the sets whose brokers are all alive, and whose rack has a live one: others are lost already.
    """

    scope: str
    rack: Int64Array | None
    broker: Int64Array | None
    other_broker: Int64Array | None
    columns: Mapping[str, Int64Array | None]
    is_loss: BoolArray
    failover_broker: Int64Array | None = None

    @property
    def count(self) -> int:
        """Return the number of sets."""
        return int(next(each for each in (self.broker, self.rack) if each is not None).size)


@attrs.frozen(kw_only=True, eq=False)
class LookAhead:
    """Hold what is wrong now, and the outages of each scope; `pairs` is None where left out."""

    now: Counts
    brokers: Sweep
    pairs: Sweep | None
    racks: Sweep
    racks_and_brokers: Sweep
    notes: tuple[str, ...]

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Return the scopes that are there, in the order of `SCOPES`."""
        found = (self.brokers, self.pairs, self.racks, self.racks_and_brokers)
        return tuple(each for each in found if each is not None)


@attrs.frozen(kw_only=True, eq=False)
class _Frame:
    """Hold the sizes that all columns share."""

    broker_count: int
    rack_count: int
    rack_of_broker: Int32Array
    with_pairs: bool
    outside: Int64Array
    """The places of (rack, broker) in a flat R x B where the broker is in another rack or none."""


@attrs.frozen(kw_only=True, eq=False)
class _Leaders:
    """Hold the columns of leaders of each scope, and for each broker the one that takes over most from it."""

    columns: dict[str, dict[str, Int64Array | None]]
    taker: Int64Array


def look_ahead(view: ClusterView, *, pairs: bool = True) -> LookAhead:
    """Return the outages of every broker, pair, rack, and rack with one more broker of `view`.

    Without `pairs`, which are most of the sets and of the time, pairs are left out.
    """
    found = successions(view)
    frame = _frame(view, pairs=pairs)
    counted = {name: _swept(found, frame, *of) for name, of in _states(found).items()}
    now = counts_of(found, after_loss(found, np.zeros(frame.broker_count, dtype=np.bool_)))
    led_by_scope = _led(found, frame)
    sets = _sets(frame)
    lost = _live_lost(found, frame, sets)
    live_count = int(found.live.sum())
    sweeps = {
        scope: Sweep(
            scope=scope,
            rack=sets[scope][0],
            broker=sets[scope][1],
            other_broker=sets[scope][2],
            columns=_columns(scope, counted, now)
            | led_by_scope.columns[scope]
            | {"live_broker_count": live_count - lost[scope].sum(axis=0)},
            is_loss=np.asarray((lost[scope] > 0).all(axis=0)),
            failover_broker=led_by_scope.taker if scope == SINGLE else None,
        )
        for scope in SCOPES
        if scope != PAIR or frame.with_pairs
    }
    note = f"pairs of brokers are left out: {frame.broker_count} brokers are more than {PAIR_BROKERS_MAX}"
    too_many = pairs and not frame.with_pairs
    return LookAhead(
        now=now,
        brokers=sweeps[SINGLE],
        pairs=sweeps.get(PAIR),
        racks=sweeps[RACK],
        racks_and_brokers=sweeps[RACK_AND_BROKER],
        notes=(*found.notes, note) if too_many else found.notes,
    )


def _frame(view: ClusterView, *, pairs: bool) -> _Frame:
    racks = view.rack_places.astype(np.int32)
    outside = np.flatnonzero(np.arange(len(view.racks))[:, None] != racks[None, :]).astype(np.int64)
    return _Frame(
        broker_count=racks.size,
        rack_count=len(view.racks),
        rack_of_broker=racks,
        with_pairs=pairs and racks.size <= PAIR_BROKERS_MAX,
        outside=outside,
    )


def _states(found: Successions) -> dict[str, tuple[Int32Array, Int32Array, Int64Array]]:
    """Return for each count its members and need of each partition, as `fill_sweep` takes them, and the weight."""
    known = found.min_isr >= 0
    # The only member that a min.insync.replicas of 1 needs may be one that is elected from outside the ISR.
    members = np.where(found.min_isr <= 1, found.led_count, found.in_sync_count)
    never = np.iinfo(np.int32).max // 2
    under = np.where(known, members - np.maximum(found.min_isr, 1) + 1, never)
    at_or_under = np.where(known, found.in_sync_count - found.min_isr, never)
    states = {
        "leaderless_count": (found.led_count, found.led_count, _ONE),
        "under_min_isr_count": (members.astype(np.int32), under.astype(np.int32), _ONE),
        "at_or_under_min_isr_count": (found.in_sync_count, at_or_under.astype(np.int32), _ONE),
        "no_replica_count": (found.live_count, found.live_count, _ONE),
        "at_risk_count": (found.clean_count, found.clean_count, _ONE),
    }
    if found.size_bytes is not None:
        states["at_risk_bytes"] = (found.clean_count, found.clean_count, found.size_bytes)
    return states


def _swept(
    found: Successions, frame: _Frame, members: Int32Array, needed: Int32Array, weight: Int64Array
) -> dict[str, Int64Array]:
    """Return one count for every set of each scope."""
    single = np.zeros(frame.broker_count, dtype=np.int64)
    pair = np.zeros(comb(frame.broker_count, 2) if frame.with_pairs else 0, dtype=np.int64)
    rack = np.zeros(frame.rack_count, dtype=np.int64)
    extra = np.zeros((frame.rack_count, frame.broker_count), dtype=np.int64)
    base = fill_sweep(found.order, members, needed, weight, frame.rack_of_broker, single, pair, rack, extra)
    with_one = rack[:, None] + extra + single[None, :]
    if frame.with_pairs:
        pair += np.concatenate([single[low] + single[low + 1 :] for low in range(single.size)] or [pair])
    swept = {SINGLE: single, PAIR: pair, RACK: rack, RACK_AND_BROKER: with_one.ravel()[frame.outside]}
    return {scope: base + values for scope, values in swept.items()}


def _columns(scope: str, counted: Mapping[str, dict[str, Int64Array]], now: Counts) -> dict[str, Int64Array | None]:
    judged = now.under_min_isr_count is not None
    columns: dict[str, Int64Array | None] = {name: of[scope] for name, of in counted.items()}
    at_or_under = counted["at_or_under_min_isr_count"][scope]
    under = counted["under_min_isr_count"][scope]
    return {
        "leaderless_count": columns["leaderless_count"],
        "under_min_isr_count": under if judged else None,
        "at_min_isr_count": at_or_under - under if judged else None,
        "no_replica_count": columns["no_replica_count"],
        "at_risk_count": columns["at_risk_count"],
        "at_risk_bytes": columns.get("at_risk_bytes"),
    }


def _sets(frame: _Frame) -> dict[str, Rows]:
    """Return the sets of each scope as columns: rack, broker and other broker."""
    low, high = np.triu_indices(frame.broker_count if frame.with_pairs else 0, 1)
    count = max(frame.broker_count, 1)
    return {
        SINGLE: (None, np.arange(frame.broker_count, dtype=np.int64), None),
        PAIR: (None, low, high),
        RACK: (np.arange(frame.rack_count, dtype=np.int64), None, None),
        RACK_AND_BROKER: (frame.outside // count, frame.outside % count, None),
    }


def _live_lost(found: Successions, frame: _Frame, sets: Mapping[str, Rows]) -> dict[str, Int64Array]:
    """Return how many live brokers each set loses, for each scope: int64[parts, sets], a part a rack or a broker."""
    live = found.live.astype(np.int64)
    of_rack = np.bincount(frame.rack_of_broker + 1, weights=live, minlength=frame.rack_count + 1)[1:].astype(np.int64)
    return {
        scope: np.array([of[rows] for of, rows in zip((of_rack, live, live), parts, strict=True) if rows is not None])
        for scope, parts in sets.items()
    }


def _led(found: Successions, frame: _Frame) -> _Leaders:
    """Return the columns of leaders of each scope: those lost, the most taken over by one, the most led by one."""
    count = frame.broker_count
    may_lead = np.arange(found.order.shape[1])[None, :] < found.led_count[:, None]
    leaders, _, takeovers = takeovers_of(found.order, may_lead, count)
    diagonal = np.arange(count)
    led_after = takeovers + leaders[None, :]
    led_after[diagonal, diagonal] = 0
    single = (leaders, takeovers.max(axis=1, initial=0), led_after.max(axis=1, initial=0))
    pairs: tuple[Int32Array, ...] = (np.zeros(0, np.int32),) * 3
    if frame.with_pairs:
        taken_max, leaders_max = (np.zeros(comb(count, 2), dtype=np.int32) for _ in range(2))
        fill_pair_takeovers(found.order, found.led_count, leaders, takeovers, taken_max, leaders_max)
        lost = np.concatenate([leaders[low] + leaders[low + 1 :] for low in range(count)] or [taken_max])
        pairs = (lost, taken_max, leaders_max)
    racks, with_one = _racks_led(found, frame, leaders, may_lead)
    of_scope = {SINGLE: single, PAIR: pairs, RACK: racks, RACK_AND_BROKER: with_one}
    names = ("lost_leader_count", "failover_count", "leader_count_max")
    taker = np.where(single[1] > 0, takeovers.argmax(axis=1), -1) if count else np.zeros(0)
    return _Leaders(
        columns={
            scope: {name: column.astype(np.int64) for name, column in zip(names, columns, strict=True)}
            for scope, columns in of_scope.items()
        },
        taker=taker.astype(np.int64),
    )


def takeovers_of(order: Int32Array, may_lead: BoolArray, count: int) -> tuple[Int32Array, Int32Array, Int32Array]:
    """Return int32[B], the partitions led by each broker and those of them taken over, and who takes over from whom.

    `order` int32[P, W] are the successions, of which those `may_lead`; the last array is int32[B, B]: how many of a
    row's leaders go to a column's broker.
    """
    first, second = (np.full(order.shape[0], -1, dtype=np.int32) for _ in range(2))
    for broker, able in zip(order.T, may_lead.T, strict=True):
        second = np.where(able & (first >= 0) & (second < 0), broker, second)
        first = np.where(able & (first < 0), broker, first)
    taken_over = first[(first >= 0) & ~may_lead[:, :1].any(axis=1)]
    passed_on = second >= 0
    pairs = first[passed_on].astype(np.int64) * count + second[passed_on]
    return (
        np.bincount(first + 1, minlength=count + 1)[1:].astype(np.int32),
        np.bincount(taken_over, minlength=count).astype(np.int32),
        np.bincount(pairs, minlength=count * count).reshape(count, count).astype(np.int32),
    )


def _racks_led(
    found: Successions, frame: _Frame, leaders: Int32Array, may_lead: BoolArray
) -> tuple[tuple[Int32Array, ...], tuple[Int32Array, ...]]:
    """Return the three columns of leaders of every rack, and of every rack with one more broker."""
    racks: list[tuple[int, int, int]] = []
    with_one: list[tuple[Int32Array, Int32Array, Int32Array]] = []
    count = frame.broker_count
    diagonal = np.arange(count)
    for rack in range(frame.rack_count):
        inside = frame.rack_of_broker == rack
        led, taken, takeovers = takeovers_of(found.order, may_lead & ~np.append(inside, False)[found.order], count)
        lost = int(leaders[inside].sum())
        racks.append((lost, int(taken.max(initial=0)), int(led.max(initial=0))))
        more = takeovers + taken[None, :]
        then_led = takeovers + led[None, :]
        more[diagonal, diagonal] = then_led[diagonal, diagonal] = 0
        of_rack = (lost + leaders, more.max(axis=1, initial=0), then_led.max(axis=1, initial=0))
        with_one.append((of_rack[0][~inside], of_rack[1][~inside], of_rack[2][~inside]))
    of_racks = np.array(racks, dtype=np.int32).reshape(-1, 3)
    empty = np.zeros(0, dtype=np.int32)
    joined = tuple(np.concatenate([empty, *(each[place] for each in with_one)]) for place in range(3))
    return tuple(of_racks.T), joined


def sweep_table(view: ClusterView, sweep: Sweep) -> pa.Table:
    """Return the outages of one scope as an Arrow table: the lost set, its counts, and its leaders."""
    ids = view.broker_ids
    columns: dict[str, Any] = {}
    if sweep.rack is not None:
        columns["rack"] = names_column(view.racks, sweep.rack)
    if sweep.broker is not None:
        columns["broker_id"] = ids[sweep.broker]
    if sweep.other_broker is not None:
        columns["other_broker_id"] = ids[sweep.other_broker]
    for name, values in sweep.columns.items():
        columns[name] = unknown_column(sweep.count) if values is None else values
    known = {name: values for name, values in sweep.columns.items() if values is not None}
    lost, taken, led = (known[name] for name in ("lost_leader_count", "failover_count", "leader_count_max"))
    share = np.divide(taken, lost, out=np.zeros(taken.size), where=taken > 0)
    columns["failover_share"] = column_of(share, absent=taken == 0)
    led_count = view.partitions.count - known["leaderless_count"]
    over = np.divide(led * known["live_broker_count"], led_count, out=np.zeros(led.size), where=led > 0)
    columns["leader_max_over_mean"] = column_of(over, absent=led == 0)
    if sweep.failover_broker is not None:
        taker = np.append(ids, np.int32(-1))[sweep.failover_broker]
        columns["failover_broker_id"] = column_of(taker, absent=taker < 0)
    return table_of(columns)


def worst(sweep: Sweep, limit: int | None) -> Int64Array:
    """Return the places of the worst `limit` outages: most at risk, then leaderless, under min-ISR, bytes, leaders.

    Sets with a broker that is not alive, which is lost already, are left out; without a limit they come last.
    """
    keys = ("at_risk_count", "leaderless_count", "under_min_isr_count", "at_risk_bytes", "failover_count")
    columns = [sweep.columns[name] for name in keys]
    known = [column for column in columns if column is not None]
    # The first key first: lexsort takes its last as the first. Only rows that may be among them are sorted.
    candidates = np.arange(sweep.count) if limit is None else np.flatnonzero(sweep.is_loss)
    if limit is not None and candidates.size > limit:
        first = known[0][candidates]
        edge = np.partition(first, first.size - limit)[first.size - limit]
        candidates = candidates[first >= edge]
    order = np.lexsort([candidates, *(-column[candidates] for column in reversed(known)), ~sweep.is_loss[candidates]])
    return candidates[order[:limit]].astype(np.int64)
