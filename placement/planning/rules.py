"""Turn a view and a goal into problems of exchanges: one for replicas, one for leaders.

What it decides: the groups of brokers that the rack rule speaks of, the classes of partitions with equal rules, what
stays where it is, and who led before.

Constraints, as in placement/balance/reachable.py: a partition stands on as many racks as it can; a broker without a
rack is a rack of its own; without any rack there is no rule. Replicas on fenced brokers stay, and their racks are
barred to the partition's other replicas; a removed broker bars nothing. Replicas of excluded topics stay and count.
A broker that is down in any other way (broker/liveness.py) is as a fenced one. A cordoned broker receives nothing,
though released Kafka would let a reassignment do so; it keeps what it has or gives it away, and leads. A rack whose
live brokers are all cordoned is barred to the partitions that have no replica there.

How: with f replicas for a open groups, f <= a: at most one in an open group, none in a barred one; f > a: at least one
in every open group. Groups of one broker each, which no partition bars, are one group where every f <= a: no broker
holds a partition twice anyway.

The leader of a partition is its first replica if that is live, else its leader as listed, else its first live
replica: a preferred election would bring the first back.

Example: brokers 1 (rack a), 2 (a) and 3 (b), factor 3: two groups, each must have one; factor 2: each at most one.

Left out: nothing that the rules name.

Source: KIP-36; placement/balance/reachable.py.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_in_row
from placement.balance.reachable import Groups
from placement.planning.goal import Goal, excluded_rows
from placement.planning.problem import Problem
from placement.planning.refusals import check_brokers, check_pinned

PINNED: Final = -1


@attrs.frozen(kw_only=True, eq=False)
class Standing:
    """Hold what a goal makes of a view's partitions; brokers are positions in the view.

    `rows` int32[P, W] all replicas; `live` bool[B] may hold replicas; `removed`, `fenced` bool[B]; `cordoned` bool[B]
    hold replicas but receive none; `changes` bool[P] tells which partitions may change; `stays` bool[P, W] replicas on
    fenced brokers; `wanted` int64[P] replicas on live brokers; `leader` int32[P], -1 where no live broker can lead.
    """

    rows: Int32Array
    live: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    fenced: NDArray[np.bool_]
    cordoned: NDArray[np.bool_]
    changes: NDArray[np.bool_]
    stays: NDArray[np.bool_]
    wanted: Int64Array
    leader: Int32Array

    @classmethod
    def of_view(cls, view: ClusterView, goal: Goal) -> Standing:
        """Return what `goal` makes of `view`, which has the added brokers; refuse what no placement can reach."""
        ids = view.broker_ids
        rows = view.replica_rows
        removed = np.isin(ids, np.array(goal.remove, dtype=np.int32))
        fenced = ~view.alive & ~removed
        live = ~removed & ~fenced
        changes = ~excluded_rows(view, goal)
        held = rows >= 0
        stays = held & np.append(fenced, False)[rows]
        kept = count_in_row(stays).astype(np.int64)
        asked = count_in_row(held) if goal.factor is None else np.full(rows.shape[0], goal.factor)
        wanted = np.where(changes, np.maximum(asked - kept, 0), 0).astype(np.int64)
        check_pinned(view, goal, removed, rows)
        had_live = any_in_row(held & ~stays)
        check_brokers(view, goal, live, wanted=wanted, held=kept, had_live=had_live)
        return cls(
            rows=rows,
            live=live,
            removed=removed,
            fenced=fenced,
            cordoned=live & np.array([one.cordoned for one in view.brokers], dtype=np.bool_),
            changes=changes,
            stays=stays,
            wanted=wanted,
            leader=leading(view, rows, live),
        )


def leading(view: ClusterView, rows: Int32Array, live: NDArray[np.bool_]) -> Int32Array:
    """Return the position of each partition's leader before the plan, int32[P], -1 for none.

    A broker that is to be removed leads too; a fenced one does not.
    """
    able = np.append(view.alive, False)
    if not rows.shape[1]:
        return np.full(rows.shape[0], PAD, dtype=np.int32)
    first = np.where(able[rows[:, 0]], rows[:, 0], PAD)
    known = view.partitions.leader
    listed = np.full(rows.shape[0], PAD, dtype=np.int64)
    if known is not None:
        listed = broker_rows(view.broker_ids, known)
        listed = np.where(able[listed] & any_in_row(rows == listed[:, None]), listed, PAD)
    some = able[rows]
    other = np.where(any_in_row(some), rows[np.arange(rows.shape[0]), some.argmax(axis=1)], PAD)
    return np.where(first >= 0, first, np.where(listed >= 0, listed, other)).astype(np.int32)


def replica_problem(view: ClusterView, goal: Goal, standing: Standing) -> Problem:
    """Return the problem of placing the replicas that may move."""
    racks = {name: place for place, name in enumerate(sorted(view.racks))}
    numbers = np.array([-1 if one.rack is None else racks[one.rack] for one in view.brokers], dtype=np.int64)
    groups = Groups.make(numbers, ~standing.live)
    barred, kind_of_row = _barred(standing, groups, _closed(standing, groups) if view.racks else None)
    key = kind_of_row * (int(standing.wanted.max(initial=0)) + 1) + standing.wanted
    key = np.where(standing.changes, key, -1)
    keys, kind = _numbered(key)
    factor = keys % (int(standing.wanted.max(initial=0)) + 1)
    group, must, room = _rules(groups, factor, barred[keys // (int(standing.wanted.max(initial=0)) + 1)])
    added = np.isin(view.broker_ids, np.array([number for number, _ in goal.add], dtype=np.int32))
    pinned = standing.rows[~standing.changes]
    return Problem(
        before=np.where(standing.stays, PAD, standing.rows).astype(np.int32),
        kind=kind,
        leader=np.where(standing.changes, standing.leader, PAD).astype(np.int32),
        factor=factor,
        must=must,
        room=room,
        group=group,
        receives=standing.live & ~standing.cordoned & (added if goal.new_only_receives else True),
        base=np.bincount(pinned[pinned >= 0], minlength=group.size).astype(np.int64),
        topic=np.zeros(kind.size, dtype=np.int32),
    )


def leader_problem(standing: Standing, now: Int32Array) -> Problem:
    """Return the problem of choosing leaders among the replicas `now` int32[P, V], positions, -1 pads anywhere."""
    able = (now >= 0) & np.append(standing.live, False)[now]
    changes = standing.changes & any_in_row(able)
    former = any_in_row(able & (now == standing.leader[:, None]))
    fixed = standing.leader[~changes & (standing.leader >= 0)]
    count = standing.live.size
    other: dict[str, Any] = {
        "kind": np.where(changes, 0, PINNED).astype(np.int32),
        "leader": np.where(former & changes, standing.leader, PAD).astype(np.int32),
        "factor": np.ones(1, dtype=np.int64),
        "must": np.zeros((1, 1), dtype=np.int64),
        "room": np.full((1, 1), count, dtype=np.int64),
        "receives": np.zeros(count, dtype=np.bool_),
        "base": np.bincount(fixed, minlength=count).astype(np.int64),
    }
    return Problem.of_rows(np.where(able, now, PAD), group=np.where(standing.live, 0, -1), **other)


def _closed(standing: Standing, groups: Groups) -> NDArray[np.bool_] | None:
    """Return the groups whose live brokers are all cordoned, bool[G]; None if there is none."""
    closed = np.bincount(groups.of[standing.live & ~standing.cordoned], minlength=groups.sizes.size) == 0
    return closed if closed.any() else None


def _barred(
    standing: Standing, groups: Groups, closed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_], Int64Array]:
    """Return the distinct sets of barred groups, bool[S, G], and the set of each partition.

    The groups `closed` are barred to the partitions that hold nothing there.
    """
    group_count = groups.sizes.size
    barred_by = np.where(standing.fenced, groups.barred_by, -1)
    special = standing.stays & (np.append(barred_by, -1)[standing.rows] >= 0)
    of = np.append(np.where(standing.live, groups.of, group_count), group_count)
    if closed is not None:
        special |= np.append(closed, False)[of[standing.rows]]
    rows = np.flatnonzero(any_in_row(special))
    flags = np.zeros((rows.size + 1, group_count + 1), dtype=np.bool_)  # The first set is that of all other rows.
    if closed is not None:
        flags[:, :group_count] = closed
        np.put_along_axis(flags[1:], of[standing.rows[rows]], False, axis=1)
    if rows.size:
        by = np.where(standing.stays[rows], barred_by[standing.rows[rows]], -1)
        np.put_along_axis(flags[1:], np.where(by < 0, group_count, by), True, axis=1)
        flags[:, group_count] = False
    sets, place = np.unique(flags[:, :group_count], axis=0, return_inverse=True)
    of_row = np.full(standing.rows.shape[0], place.ravel()[0], dtype=np.int64)
    of_row[rows] = place.ravel()[1:]
    return sets, of_row


def _numbered(key: Int64Array) -> tuple[Int64Array, Int32Array]:
    """Return the distinct keys of 0 or more, ascending, and the number of each row's key, -1 for a negative one."""
    flags = np.zeros(int(key.max(initial=0)) + 1, dtype=np.bool_)
    flags[key[key >= 0]] = True
    if not flags.any():
        flags[0] = True  # A problem has a class, even if no partition is in it.
    keys = np.flatnonzero(flags)
    number = np.cumsum(flags) - 1
    return keys, np.where(key >= 0, number[key], PINNED).astype(np.int32)


def _rules(groups: Groups, factor: Int64Array, barred: NDArray[np.bool_]) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the group of each broker, and `must` and `room` of each class."""
    is_open = ~barred
    wide = factor > is_open.sum(axis=1)
    must = (is_open & wide[:, None]).astype(np.int64)
    room = np.where(wide[:, None], groups.of.size, is_open.astype(np.int64))
    single = (groups.sizes == 1) & ~barred.any(axis=0)
    if wide.any() or np.count_nonzero(single) < 2:
        return groups.of, must, room
    number = np.where(single, 0, np.cumsum(~single))
    first = np.concatenate([np.flatnonzero(single)[:1], np.flatnonzero(~single)])
    together = room[:, first]
    together[:, 0] = groups.of.size
    return np.where(groups.of >= 0, number[groups.of], -1), must[:, first], together
