"""Read what a plan starts from, and what the rules allow, from the view and the goal, for the planner and the check.

What it decides: which brokers may hold replicas, how many each partition shall have, who led, and who leads after a
plan; and the questions that the bounds of replicas and of leaders answer (question.py).

Example: a fenced broker is not live, so its replicas are not among those `wanted`, and they stay.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_in_row, first_in_row
from placement.planning.goal import Goal, copy_sizes, excluded_rows
from placement.planning.question import Question


@attrs.frozen(kw_only=True, eq=False)
class Given:
    """Hold what a goal makes of a view's partitions; brokers are positions in the view.

    `rows` int32[P, W] all replicas; `live` bool[B] may hold replicas; `fenced` (down in any way) keep theirs and gain
    none, `cordoned` hold replicas but gain none, `removed` keep none; `changes` bool[P] tells which partitions may
    change; `wanted` int64[P] replicas on live brokers; `leader` int32[P], -1 where no live broker can lead.
    """

    rows: Int32Array
    live: BoolArray
    fenced: BoolArray
    cordoned: BoolArray
    removed: BoolArray
    changes: BoolArray
    wanted: Int64Array
    leader: Int32Array

    @classmethod
    def read(cls, view: ClusterView, goal: Goal) -> Given:
        """Return what a goal makes of a view that has the added brokers."""
        rows = view.replica_rows
        removed = np.isin(view.broker_ids, goal.remove)
        fenced = ~view.alive & ~removed
        changes = ~excluded_rows(view, goal)
        stay = count_in_row(np.append(fenced, False)[rows])
        factor = count_in_row(rows >= 0) if goal.factor is None else goal.factor
        wanted = np.where(changes, np.maximum(factor - stay, 0), 0).astype(np.int64)
        live = ~removed & ~fenced
        return cls(
            rows=rows,
            live=live,
            fenced=fenced,
            cordoned=live & view.flag("cordoned"),
            removed=removed,
            changes=changes,
            wanted=wanted,
            leader=_former_leaders(view, rows),
        )

    @property
    def stays(self) -> BoolArray:
        """Return which replicas stand on fenced brokers, bool[P, W]."""
        return np.asarray(np.append(self.fenced, False)[self.rows])

    def receives(self, view: ClusterView, goal: Goal) -> BoolArray:
        """Return which brokers may receive a replica, bool[B]."""
        able = self.live & ~self.cordoned
        return able & added(view, goal) if goal.new_only_receives else able


def added(view: ClusterView, goal: Goal) -> BoolArray:
    """Return which brokers the goal adds, bool[B]."""
    return np.isin(view.broker_ids, [number for number, _ in goal.add])


def _former_leaders(view: ClusterView, rows: Int32Array) -> Int32Array:
    """Return who led: the first replica if it is alive, else who is listed, else the first that is alive.

    A preferred election would bring the first back; a broker that is to be removed leads too.
    """
    able = np.append(view.alive, False)[rows]
    leader = first_in_row(rows, able)
    listed = view.partitions.leader
    if listed is not None and rows.shape[1]:
        place = broker_rows(view.broker_ids, listed)
        good = any_in_row(able & (rows == place[:, None])) & ~able[:, 0]
        leader = np.where(good, place, leader).astype(np.int32)
    return leader


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
    """Return who leads each partition before and after a plan, positions of brokers, int32[P] twice, -1 for nobody."""
    given = Given.read(view, goal)
    return given.leader, leading(given, target)


def replica_question(view: ClusterView, goal: Goal, given: Given) -> Question:
    """Return the question of who holds replicas: in counts, or in bytes where these become even."""
    pinned = given.rows[~given.changes]
    leader = np.where(given.changes & np.append(given.live, False)[given.leader], given.leader, PAD)
    base = np.bincount(pinned[pinned >= 0], minlength=given.live.size).astype(np.int64)
    sizes = copy_sizes(view) if goal.by_bytes else None
    if sizes is not None:
        base = bytes_of(np.where(given.changes[:, None], PAD, given.rows), sizes, given.live.size)
    return Question(
        rows=given.rows,
        wanted=given.wanted,
        leader=leader.astype(np.int32),
        live=given.live,
        stays=given.fenced,
        receives=given.receives(view, goal),
        cordoned=given.cordoned,
        rack=Question.rack_numbers(view),
        base=base,
        topic=view.partitions.topic_index,
        weights=None if sizes is None else np.where(given.wanted > 0, sizes, 0),
    )


def bytes_of(rows: Int32Array, sizes: Int64Array, count: int) -> Int64Array:
    """Return the bytes of each broker, int64[B], a replica counting as many as `sizes` int64[P] say."""
    loads = np.zeros(count + 1, dtype=np.int64)
    for column in range(rows.shape[1]):
        np.add.at(loads, rows[:, column], sizes)
    return loads[:count]


def leader_question(given: Given, target: Int32Array) -> Question:
    """Return the question of who leads: one live replica of each target, whatever its rack."""
    count = given.live.size
    able = (target >= 0) & np.append(given.live, False)[target]
    asked = given.changes & any_in_row(able)
    kept = any_in_row(able & (target == given.leader[:, None]))
    fixed = given.leader[~asked & (given.leader >= 0)]
    none = np.zeros(count, dtype=np.bool_)
    return Question(
        rows=np.where(able, target, PAD).astype(np.int32),
        wanted=asked.astype(np.int64),
        leader=np.where(asked & kept, given.leader, PAD).astype(np.int32),
        live=given.live,
        stays=none,
        receives=none,
        rack=np.arange(count, dtype=np.int64),
        base=np.bincount(fixed, minlength=count).astype(np.int64),
        topic=np.zeros(target.shape[0], dtype=np.int32),
    )


def leading(given: Given, target: Int32Array) -> Int32Array:
    """Return who leads after the plan: the first live replica, but who led stays where the first one is fenced."""
    able = (target >= 0) & np.append(given.live, False)[target]
    leader = first_in_row(target, able)
    if not target.shape[1]:
        return leader
    stays = ~able[:, 0] & any_in_row(able & (target == given.leader[:, None]))
    return np.where(stays | ~given.changes, given.leader, leader).astype(np.int32)
