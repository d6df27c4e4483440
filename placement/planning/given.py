"""Read a plan's starting point and the rules' limits from the view and the goal, for planner and check.

A broker that is down (broker/liveness.py) receives nothing and leads nothing; a partition without a leader has none
afterwards either. A cordoned broker receives nothing, and no partition changes that it holds: Kafka 4.4 refuses each
target that names one (KAFKA-20832). Goals `balance`, `add` and `racks` may change every other partition that is led.
Goals `drain` and `factor` change only partitions that hold a replica on a removed broker, or whose number of replicas
is another one: one that lacks replicas keeps all others; one that has too many keeps those in sync first, the leader,
the preferred leader, then those that leave the loads most even; a leader stays if its replica does.

Example: replicas 1, 2, 3, of which 3 is down, with factor 2: 1 and 2 stay.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array
from broker.ids import NO_LEADER
from broker.row_flags import any_in_row, count_each, count_in_row, first_in_row, members
from placement.planning.goal import Goal, copy_sizes, excluded_rows
from placement.planning.question import Question


@attrs.frozen(kw_only=True, eq=False)
class Given:
    """Hold what a goal makes of a view's partitions; brokers are positions in the view.

    `rows` int32[P, W] all replicas. Of brokers, bool[B]: `live` may hold replicas of partitions that change; `fenced`
    (down in any way), `cordoned` and `removed` not; `receives` may get new ones. Of partitions: `changes` bool[P]
    whether it may change; `stays` and `own` bool[P, W] the replicas that stay, and those that may be chosen; `fresh`
    bool[P] whether it may get new ones; `wanted` int64[P] replicas besides those that stay; `leader` int32[P] who
    leads, or would after a preferred election, -1 where no live broker can; `listed` int32[P] who leads now; `unled`
    bool[P] who is listed without a leader; `offline` int32[P, any width] the replicas that are listed as offline.
    """

    rows: Int32Array
    live: BoolArray
    fenced: BoolArray
    cordoned: BoolArray
    removed: BoolArray
    receives: BoolArray
    pool: BoolArray
    changes: BoolArray
    stays: BoolArray
    own: BoolArray
    fresh: BoolArray
    wanted: Int64Array
    leader: Int32Array
    listed: Int32Array
    unled: BoolArray
    offline: Int32Array
    is_narrow: bool

    @classmethod
    def read(cls, view: ClusterView, goal: Goal) -> Given:
        """Return what a goal makes of a view that has the added brokers."""
        rows, count = view.replica_rows, count_in_row(view.replica_rows >= 0)
        removed = np.isin(view.broker_ids, goal.remove)
        fenced = ~view.alive & ~removed
        cordoned = view.alive & ~removed & view.flag("cordoned")
        live = view.alive & ~removed & ~cordoned
        receives = live & added(view, goal) if goal.new_only_receives else live
        kept = (rows >= 0) & ~_on(removed, rows)
        factor = count if goal.factor is None else np.full_like(count, goal.factor)
        changes = ~excluded_rows(view, goal)
        if goal.is_narrow:
            changes = changes & ((count_in_row(kept) < count) | (count != factor))
            stays, own, fresh = _narrow(view, rows, kept, factor)
        else:
            changes = changes & ~any_in_row(_on(cordoned, rows)) & ~unled(view)
            stays, own, fresh = _on(fenced, rows), _on(live, rows), np.ones(count.size, dtype=np.bool_)
        return cls(
            rows=rows,
            live=live,
            fenced=fenced,
            cordoned=cordoned,
            removed=removed,
            receives=receives,
            pool=receives if goal.is_narrow else live,
            changes=changes,
            stays=stays & changes[:, None],
            own=own & changes[:, None],
            fresh=fresh & changes,
            wanted=np.where(changes, np.maximum(factor - count_in_row(stays), 0), 0).astype(np.int64),
            leader=_former_leaders(view, rows),
            listed=_listed_leaders(view, rows),
            unled=unled(view),
            offline=_offline(view),
            is_narrow=goal.is_narrow,
        )

    def electable(self, target: Int32Array) -> BoolArray:
        """Return which replicas of a plan can be preferred leaders: live, and not listed as offline, bool[P, V]."""
        able = (target >= 0) & _on(self.live, target) & ~members(target, self.offline)
        return np.asarray(able & ~self.unled[:, None])


def _on(brokers: BoolArray, rows: Int32Array) -> BoolArray:
    """Return which replicas stand on the flagged brokers, bool[P, W]."""
    return np.asarray(np.append(brokers, False)[rows])


def _narrow(
    view: ClusterView, rows: Int32Array, kept: BoolArray, factor: Int64Array
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return which replicas stay, which may be chosen, bool[P, W] twice, and which partitions get new ones, bool[P].

    `kept` are the replicas that are not on removed brokers.
    """
    alive, isr = kept & _on(view.alive, rows), view.partitions.isr
    in_sync = alive if isr is None else alive & members(view.partitions.replicas, isr)
    lacks = count_in_row(kept) <= factor
    enough, some = count_in_row(in_sync) >= factor, count_in_row(alive) >= factor
    first = in_sync & (rows == _listed_leaders(view, rows)[:, None])
    preferred = in_sync & (np.arange(rows.shape[1]) == 0) & (count_in_row(first) < factor)[:, None]
    stays = np.select(
        [lacks[:, None], enough[:, None], some[:, None]], [kept, first | preferred, in_sync], default=alive
    )
    chosen = np.where(enough[:, None], in_sync, alive) & ~stays & (~lacks & some)[:, None]
    return np.asarray(stays), np.asarray(chosen), np.asarray(lacks | ~some)


def _listed_leaders(view: ClusterView, rows: Int32Array) -> Int32Array:
    """Return who leads as the view lists it, int32[P], -1 for nobody; where it does not say, the first live replica."""
    able, listed = _able(view, rows), view.partitions.leader
    leader = first_in_row(rows, able)
    if listed is None or not rows.shape[1]:
        return leader
    place = broker_rows(view.broker_ids, listed)
    return np.where(any_in_row(able & (rows == place[:, None])), place, leader).astype(np.int32)


def unled(view: ClusterView) -> BoolArray:
    """Return which partitions are listed without a leader, bool[P]."""
    listed = view.partitions.leader
    return np.zeros(view.partitions.count, dtype=np.bool_) if listed is None else np.asarray(listed == NO_LEADER)


def _able(view: ClusterView, rows: Int32Array) -> BoolArray:
    """Return which replicas may lead: on a live broker, not listed as offline, of a partition that is led."""
    return np.asarray(_on(view.alive, rows) & ~members(rows, _offline(view)) & ~unled(view)[:, None])


def _offline(view: ClusterView) -> Int32Array:
    """Return the replicas that are listed as offline, positions of brokers, int32[P, any width], -1 pads."""
    listed = view.partitions.offline
    return view.replica_rows[:, :0] if listed is None else broker_rows(view.broker_ids, listed).astype(np.int32)


def added(view: ClusterView, goal: Goal) -> BoolArray:
    """Return which brokers the goal adds, bool[B]."""
    return np.isin(view.broker_ids, [number for number, _ in goal.add])


def _former_leaders(view: ClusterView, rows: Int32Array) -> Int32Array:
    """Return who leads once preferred leaders do: the first replica if it is alive, else who is listed.

    A broker that is to be removed leads too. The ISR is not asked, other than of completion's `preferred`, which is who
    leads right after the plan: loads are made even for when all live replicas have caught up.
    """
    able = _able(view, rows)
    if not rows.shape[1]:
        return first_in_row(rows, able)
    return np.where(able[:, 0], rows[:, 0], _listed_leaders(view, rows)).astype(np.int32)


def target_rows(view: ClusterView, rows: Int64Array, replicas: Int32Array) -> Int32Array:
    """Return all partitions' replicas after a plan of some `rows`, positions of brokers, int32[P, V], -1 pads."""
    before = view.replica_rows
    width = max(before.shape[1], replicas.shape[1])
    after = np.full((before.shape[0], width), PAD, dtype=np.int32)
    after[:, : before.shape[1]] = before
    after[rows] = PAD
    after[rows, : replicas.shape[1]] = broker_rows(view.broker_ids, replicas)
    return after


def leaders_of(view: ClusterView, goal: Goal, target: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Return who leads each partition now and after a plan, positions of brokers, int32[P] twice, -1 for nobody."""
    given = Given.read(view, goal)
    return given.listed, leading(given, target)


def replica_question(view: ClusterView, goal: Goal, given: Given) -> Question:
    """Return the question of who holds replicas: in counts, or in bytes where these become even."""
    others = np.where(given.changes[:, None] & ~given.stays, PAD, given.rows)
    can_lose = ~given.is_narrow & any_in_row(given.own & (given.rows == given.leader[:, None]))
    sizes = copy_sizes(view) if goal.by_bytes else None
    return Question(
        rows=given.rows,
        wanted=given.wanted,
        own=given.own,
        stays=given.stays,
        fresh=given.fresh,
        leader=np.where(can_lose, given.leader, PAD).astype(np.int32),
        live=given.live,
        receives=given.receives,
        pool=given.pool,
        rack=Question.rack_numbers(view),
        base=count_each(others, given.live.size) if sizes is None else bytes_of(others, sizes, given.live.size),
        topic=view.partitions.topic_index,
        weights=None if sizes is None else np.where(given.wanted > 0, sizes, 0),
    )


def bytes_of(rows: Int32Array, sizes: Int64Array, count: int) -> Int64Array:
    """Return the bytes of each broker, int64[B], a replica counting as many as `sizes` int64[P] say."""
    loads = np.zeros(count + 1, dtype=np.int64)
    for column in range(rows.shape[1]):
        np.add.at(loads, rows[:, column], sizes)
    return loads[:count]


def staying_leaders(given: Given, target: Int32Array) -> Int32Array:
    """Return the leaders that no plan replaces, int32[P]; -1 where one is to be chosen among the `target` replicas."""
    leader = np.where(given.changes, PAD, given.leader)
    if given.is_narrow:
        able = np.where(given.electable(target), target, PAD)
        for who in (given.listed, given.leader):
            stays = given.changes & (who >= 0) & any_in_row(able == who[:, None])
            leader = np.where(stays, who, leader)
    return leader.astype(np.int32)


def leader_question(given: Given, target: Int32Array) -> Question:
    """Return the question of who leads: one live replica of each target, whatever its rack."""
    count = given.live.size
    able = given.electable(target)
    fixed = staying_leaders(given, target)
    asked = given.changes & any_in_row(able) & (fixed < 0)
    kept = any_in_row(able & (target == given.leader[:, None]))
    none = np.zeros(count, dtype=np.bool_)
    return Question(
        rows=np.where(able, target, PAD).astype(np.int32),
        wanted=asked.astype(np.int64),
        own=able,
        stays=np.zeros_like(able),
        fresh=np.zeros_like(asked),
        leader=np.where(asked & kept, given.leader, PAD).astype(np.int32),
        live=given.live,
        receives=none,
        pool=none,
        rack=np.arange(count, dtype=np.int64),
        base=count_each(fixed, count),
        topic=np.zeros(target.shape[0], dtype=np.int32),
    )


def leading(given: Given, target: Int32Array) -> Int32Array:
    """Return the leaders after the plan: the first live replica, or the current leader if the first replica is down."""
    able = given.electable(target)
    leader = first_in_row(target, able)
    if not target.shape[1]:
        return leader
    stays = ~able[:, 0] & any_in_row(able & (target == given.leader[:, None]))
    return np.where(stays | ~given.changes, given.leader, leader).astype(np.int32)
